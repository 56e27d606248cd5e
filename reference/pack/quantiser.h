// SPDX-License-Identifier: Apache-2.0
// Quantisers: rows of fp32 weights to codes, scales and zero points.
#pragma once

#include <cstdint>
#include <span>

#include "omni/omni.h"
#include "reference/pack/options.h"

namespace ref {

// Codes and scales of rows [0, rows) of a matrix; groups = ceil(k / group).
struct QuantisedRows {
  uint8_t* codes;  // [rows][k], 0..15
  float* scales;   // [rows][groups], each bf16-exact
  uint8_t* zeros;  // [rows][groups], 0..15; 8 when symmetric. w = (code - zero) * scale
};

// w = (code - zero) * scale, 4 bits. Symmetric: absmax / 7.5, codes -8..7; asymmetric: (max - min) / 15 over a range that includes
// 0; scales rounded to bf16 before codes are chosen. kSearch minimises the error of each group, weighted by importance[k] (the
// second moment of input k) unless that is empty. A group that does not divide k ends short. The same bits for any thread count.
void quantise_rows(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric, Quantiser quantiser,
                   std::span<const float> importance, const QuantisedRows& out, const omni_parallel* parallel);

// w = code * scale, 8 bits, absmax / 127: codes int8 [rows][k], scales [rows][groups] fp32 (bf16_scales: rounded to bf16 first).
void quantise_rows_s8(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool bf16_scales, int8_t* codes,
                      float* scales, const omni_parallel* parallel);

// GPTQ (Frantar et al., 2022): 4 bits with error feedback along k through the inverse of the damped Hessian [k][k] (sum of x x^T).
// Scales are found as kSearch does, weighted by the diagonal. Overwrites w with what is left of it.
void quantise_rows_gptq(float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric,
                        std::span<const float> inverse_cholesky, std::span<const float> importance, const QuantisedRows& out,
                        const omni_parallel* parallel);

}  // namespace ref
