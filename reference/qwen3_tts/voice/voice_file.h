// SPDX-License-Identifier: Apache-2.0
// An encoded voice as a small versioned file, so that a reference is encoded once.
#pragma once

#include <filesystem>

#include "reference/qwen3_tts/model/prompt.h"

namespace ref::tts {

// Writes beside the destination and renames. Throws Error (OutputError where the destination is at fault).
void save_voice(const Voice& voice, const Config& config, const std::filesystem::path& file);
// Throws Error naming the file and what is wrong: not a voice, another version, made for another width or codebook size.
Voice load_voice(const std::filesystem::path& file, const Config& config);

}  // namespace ref::tts
