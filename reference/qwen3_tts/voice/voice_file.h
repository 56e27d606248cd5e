// SPDX-License-Identifier: Apache-2.0
// An encoded voice as a small versioned file, so that a reference is encoded once.
#pragma once

#include <filesystem>

#include "reference/qwen3_tts/model/prompt.h"

namespace ref::tts {

// A safetensors file: "speaker" F32 [talker hidden] and "frames" I32 [frames][16], either or both, and in its metadata format
// "omni-voice", version "1", talker_hidden, codebook_size, and with frames reference_text. docs/cloning.md describes it.
//
// Writes beside the destination and renames. Throws Error (OutputError where the destination is at fault).
void save_voice(const Voice& voice, const Config& config, const std::filesystem::path& file);
// Throws Error naming the file and what is wrong: not a voice, another version, made for another width or codebook size.
Voice load_voice(const std::filesystem::path& file, const Config& config);

}  // namespace ref::tts
