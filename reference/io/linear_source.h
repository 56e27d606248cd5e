// SPDX-License-Identifier: Apache-2.0
// A linear layer of a checkpoint, dense or already in int4 (GPTQ v1 and v2, AWQ, compressed-tensors pack-quantized), checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/io/checkpoint.h"
#include "reference/io/quant_config.h"

namespace ref {

struct LinearSource {
  std::string name;  // of the module, e.g. "model.layers.0.mlp.up_proj"
  int64_t n = 0, k = 0;

  // Dense: a BF16, F16 or F32 tensor [n][k].
  const TensorView* dense = nullptr;

  // Int4, where dense is null.
  int64_t group = 0;                            // inputs of one scale, k at most
  omni_format codes_format = OMNI_FORMAT_NONE;  // GPTQ, AWQ or CT_PACKED
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;  // BF16, F16 or F32
  bool scales_by_channel = false;      // [n][groups], else [groups][n]
  omni_zeros zeros_kind = OMNI_ZEROS_SYMMETRIC;
  const TensorView* zeros = nullptr;
  std::vector<int32_t> g_idx;  // act-order: group of input k; empty when it is k / group

  int64_t groups() const { return (k + group - 1) / group; }
};

// Finds module `name` of n x k in the checkpoint: dense where there is a weight tensor, else in the form of the quantisation
// config. Throws Error naming tensor, what was expected and what was found.
LinearSource find_linear(const Checkpoint& checkpoint, const std::optional<QuantConfig>& quant, const std::string& name, int64_t n,
                         int64_t k);

// Rows [n0, n1) in fp32, [n1 - n0][k]: dense values widened exactly; int4 as fp32 (code - zero) * scale, in the order of the
// inputs.
void read_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out);

// Codes (0..15), scales and zero points of rows [n0, n1) of an int4 source: codes [rows][k] in the order of the inputs.
void read_codes(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes);
// Scales [n][groups] and zero points [n][groups] of the whole int4 source, scales widened exactly. A zero point of GPTQ v1 may be
// 16 (stored as 15).
void read_scales(const LinearSource& source, std::vector<float>* scales, std::vector<uint8_t>* zeros);

}  // namespace ref
