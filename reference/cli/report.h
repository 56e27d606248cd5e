// SPDX-License-Identifier: Apache-2.0
// Figures as text and JSON, units named: GB is 1e9 bytes, GiB 2^30.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "reference/cli/model.h"

namespace ref::cli {

using Json = nlohmann::ordered_json;

// Tokens and seconds, and the rate of the two: null without tokens or time.
Json rate_json(int64_t tokens, double seconds);
// "40 tokens in 1.50 s, 26.7 tok/s".
std::string rate_text(int64_t tokens, double seconds);
// "1.25 GB".
std::string gb_text(uint64_t bytes);

// Most memory that the process had resident, file pages that it mapped included.
uint64_t peak_resident_bytes();

// The model and the path of its weights.
Json model_json(const Model& model, const spark::Decoder& decoder);
// Lines on stderr before a run: form of the weights, notes, with `kernels` also what serves each operation.
void note_model(const Model& model, const spark::Decoder& decoder, const MachineOptions& options);

// The object as the line or lines of a program's output, whatever bytes its texts hold.
std::string dump(const Json& json);

}  // namespace ref::cli
