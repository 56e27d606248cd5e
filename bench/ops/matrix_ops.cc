// SPDX-License-Identifier: Apache-2.0
// Linear layers, attention and convolution.
#include "bench/ops/attention.h"
#include "bench/ops/conv.h"
#include "bench/ops/dense.h"
#include "bench/ops/integer.h"
#include "bench/ops/linear.h"
#include "bench/ops/tables.h"
#include "bench/ops/w4a16.h"

namespace omnibench {
namespace {

const std::vector<std::string> kMatrix = {"n", "k"};
const std::vector<std::string> kIntegerLimits = {"read", "peak-vnni"};
const std::vector<std::string> kFloatLimits = {"read", "peak-fma", "peak-bf16"};
constexpr const char* kLinearBytes = "codes + scales (and zeros) + x + y (bf16), each once";

}  // namespace

std::vector<Op> matrix_ops() {
  std::vector<Op> ops;
  ops.push_back({.name = "w4a16",
                 .what = "y = x * W^T, 4-bit weights (tg4), bf16 x; classes group, torch, and fast (AMX bf16)",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {"group", "torch", "fast"},
                 .most_rows = 4096,
                 .group = "128",
                 .cold = true,
                 .registry = {"gemv", "gemm"},
                 .weights = {"tg4"},
                 .peers = {"onednn"},
                 .limits = kFloatLimits,
                 .workers = {{"torch-int4", "torch-int4"}},
                 .bytes_model = kLinearBytes,
                 .parts = w4a16_parts,
                 .operations = linear_operations,
                 .make = make_w4a16});
  ops.push_back({.name = "w4a8",
                 .what = "y = x * W^T in exact integers, 4-bit weights (w4s, zero point 8), x quantised on the way in",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {"exact"},
                 .most_rows = 4096,
                 .group = "128",
                 .cold = true,
                 .registry = {"gemv", "gemm"},
                 .weights = {"w4s"},
                 .peers = {},
                 .limits = kIntegerLimits,
                 .workers = {{"vllm", "vllm"}},
                 .bytes_model = kLinearBytes,
                 .parts = integer_parts,
                 .operations = linear_operations,
                 .make = make_integer});
  ops.push_back({.name = "w8a8",
                 .what = "the same with 8-bit weights (w8s)",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {"exact"},
                 .most_rows = 4096,
                 .group = "K",
                 .cold = true,
                 .registry = {"gemv", "gemm"},
                 .weights = {"exact_s8_w8s"},
                 .peers = {"onednn"},
                 .limits = kIntegerLimits,
                 .workers = {},
                 .bytes_model = kLinearBytes,
                 .parts = integer_parts,
                 .operations = linear_operations,
                 .make = make_integer});
  ops.push_back({.name = "w8a16",
                 .what = "y = x * W^T, 8-bit weights (w8s), bf16 x, class group",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {"group"},
                 .most_rows = 4096,
                 .group = "K",
                 .cold = true,
                 .registry = {"gemv", "gemm"},
                 .weights = {"group_bf16_w8s"},
                 .peers = {},
                 .limits = kFloatLimits,
                 .workers = {},
                 .bytes_model = kLinearBytes,
                 .parts = integer_parts,
                 .operations = linear_operations,
                 .make = make_integer});
  ops.push_back({.name = "dense",
                 .what = "y = x * W^T, bf16 or fp32 weights (w16, w32); f32x: bf16 weights with fp32 x; fast: AMX bf16",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {"bf16", "f32x", "f32", "fast"},
                 .most_rows = 4096,
                 .group = "",
                 .cold = true,
                 .registry = {"gemv", "gemm"},
                 .weights = {"w16", "w32"},
                 .peers = {"onednn"},
                 .limits = kFloatLimits,
                 .workers = {},
                 .bytes_model = "weights + x + y (bf16), each once",
                 .parts = dense_parts,
                 .operations = linear_operations,
                 .make = make_dense});
  ops.push_back({.name = "attention",
                 .what = "M rows at the last positions of a cache of keys and values; classes: the cache's type",
                 .sizes = {"heads", "kv_heads", "head_dim", "keys"},
                 .shapes = {{"decode", {8, 2, 256, 4096}}, {"prefill", {8, 2, 256, 512}}, {"narrow", {16, 4, 128, 4096}}},
                 .variants = {"bf16", "f32", "s8"},
                 .most_rows = 4096,
                 .group = "",
                 .cold = true,
                 .registry = {"attention"},
                 .weights = {},
                 .peers = {},
                 .limits = kFloatLimits,
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "the whole cache + q + output, each once",
                 .parts = attention_parts,
                 .operations = attention_operations,
                 .make = make_attention});
  ops.push_back({.name = "conv1d",
                 .what = "dense convolution, M frames of `rows` output rows; f32x: bf16 weights with fp32 rows",
                 .sizes = {"n", "inputs", "taps", "dilation", "rows"},
                 .shapes = codec_convolutions(),
                 .variants = {"f32", "f32x", "bf16"},
                 .most_rows = 64,
                 .group = "",
                 .cold = true,
                 .registry = {"conv1d"},
                 .weights = {},
                 .peers = {},
                 .limits = kFloatLimits,
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "weights + bias + x + y, each once",
                 .parts = conv1d_parts,
                 .operations = conv1d_operations,
                 .make = make_conv1d});
  ops.push_back({.name = "depthwise",
                 .what = "every channel convolved by itself, M output rows",
                 .sizes = {"n", "taps", "dilation"},
                 .shapes = {{"convnext", {1024, 7, 1}}},
                 .variants = {"f32", "bf16"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"depthwise"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "weights + bias + x + y, each once",
                 .parts = depthwise_parts,
                 .operations = depthwise_operations,
                 .make = make_depthwise});
  return ops;
}

}  // namespace omnibench
