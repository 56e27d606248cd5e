// SPDX-License-Identifier: Apache-2.0
// Which form the matrices of each part take.
#pragma once

#include <map>
#include <string>

#include "reference/pack/plan.h"
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {

// `source_fp32`: the weights are stored in fp32.
MatrixWish part_wish(const PackOptions& options, Part part, bool source_fp32);

// For the metadata of a packed file.
std::map<std::string, std::string> part_facts(const PackOptions& options);

}  // namespace ref::tts
