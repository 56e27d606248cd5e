// SPDX-License-Identifier: Apache-2.0
// Residual vector quantisation: the nearest entry of a codebook, what is left of the row, the next codebook.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omni/omni.h"
#include "reference/core/model_weights.h"

namespace ref::tts {

// Codes of `rows` rows [rows][dim], which are reduced in place, over the levels of `codebooks` [levels][size][dim] in fp32: level l
// of row t at codes[t * ld + l]. Distance: sum of (x - entry)^2 over ascending channels, each step rounded to fp32; the lowest
// index on a tie.
void quantise_rows(const Plain& codebooks, float* x, int64_t rows, int32_t* codes, int64_t ld, const omni_parallel* parallel);

}  // namespace ref::tts
