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

// How the rows of a dense tensor lie in it.
enum class RowOrder : uint8_t {
  kRows,         // [n][k]
  kConvolution,  // [n][inputs][taps]; a row is (tap, input)
  kTransposed    // [inputs][outputs][stride * taps] of a transposed convolution; n = stride * outputs, a row is (tap, input)
};

struct LinearSource {
  std::string name;  // of the module, e.g. "model.layers.0.mlp.up_proj"
  int64_t n = 0, k = 0;

  // Dense: a BF16, F16 or F32 tensor.
  const TensorView* dense = nullptr;
  RowOrder order = RowOrder::kRows;
  int64_t taps = 1;  // of a convolution: k = taps * inputs

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

// A convolution as the matrix that omni_conv1d_run() takes: row o, input (tap j, channel c) = W[o][c][j]. `name` is the module of
// a tensor "NAME.weight" [outputs][inputs][taps].
LinearSource find_convolution(const Checkpoint& checkpoint, const std::string& name, int64_t outputs, int64_t inputs, int64_t taps);
// A transposed one, [inputs][outputs][stride * taps]: row r * outputs + o, input (tap j, channel c) =
// W[c][o][r + stride * (taps - 1 - j)].
LinearSource find_transposed(const Checkpoint& checkpoint, const std::string& name, int64_t outputs, int64_t inputs, int64_t taps,
                             int64_t stride);

// Rows [n0, n1) in fp32, [n1 - n0][k]: dense values widened exactly; int4 as fp32 (code - zero) * scale, in the order of the
// inputs. Rows of a transposed convolution lie all over its tensor, whose pages are let go behind the reader.
void read_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out);

// Codes (0..15), scales and zero points of rows [n0, n1) of an int4 source: codes [rows][k] in the order of the inputs.
void read_codes(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes);
// Scales [n][groups] and zero points [n][groups] of the whole int4 source, scales widened exactly. A zero point of GPTQ v1 may be
// 16 (stored as 15).
void read_scales(const LinearSource& source, std::vector<float>* scales, std::vector<uint8_t>* zeros);

}  // namespace ref
