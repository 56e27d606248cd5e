// SPDX-License-Identifier: Apache-2.0
// Quantisers: rows of fp32 weights to codes, scales and zero points. docs/quantisation.md has the formulas and what they give.
#pragma once

#include <cstdint>
#include <span>

#include "omni/omni.h"
#include "reference/pack/input_moments.h"
#include "reference/pack/options.h"

namespace ref {

// Codes and scales of rows [0, rows) of a matrix; groups = ceil(k / group).
struct QuantisedRows {
  uint8_t* codes;            // [rows][k], 0..15
  float* scales;             // [rows][groups], each bf16-exact
  uint8_t* zeros;            // [rows][groups], 0..15; 8 when symmetric. w = (code - zero) * scale
  float* offsets = nullptr;  // [rows][groups], instead of zeros where not null: w = (code - 8) * scale + offset
};

// w = (code - zero) * scale, 4 bits. kNearest is symmetric: absmax / 7.5, codes -8..7, or asymmetric: (max - min) / 15 over a range
// that includes 0; scales rounded to bf16 before codes are chosen. kSearch looks for the scale and zero of least error in each
// group; where out.offsets is given and not symmetric, zeros are any bf16 numbers (kNearest: (8 - zero) * scale in fp32). `inputs`
// weights errors by the moments of a text's inputs, unless it is null; groups of up to 256 by all moments inside the group.
// A group that does not divide k ends short. The same bits for any thread count. Throws Error for weights that are not finite.
void quantise_rows(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric, Quantiser quantiser,
                   const InputMoments* inputs, const QuantisedRows& out, const omni_parallel* parallel);

// GPTQ (Frantar et al., 2022): codes of kSearch with error feedback along k, through the factor of the damped moments. Scales are
// found when their group is reached, weighted by what is left of each input when those before it are given. `inputs` must have
// its factor.
void quantise_rows_gptq(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric,
                        const InputMoments& inputs, const QuantisedRows& out, const omni_parallel* parallel);

// w = code * scale, 8 bits, absmax / 127: codes int8 [rows][k], scales [rows][groups] fp32 (bf16_scales: rounded to bf16 first).
void quantise_rows_s8(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool bf16_scales, int8_t* codes,
                      float* scales, const omni_parallel* parallel);

}  // namespace ref
