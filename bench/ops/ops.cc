// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/op.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "bench/ops/activations.h"
#include "bench/ops/attention.h"
#include "bench/ops/conv.h"
#include "bench/ops/dense.h"
#include "bench/ops/integer.h"
#include "bench/ops/model.h"
#include "bench/ops/move.h"
#include "bench/ops/w4a16.h"

namespace omnibench {
namespace {

const std::vector<std::string> kMatrix = {"n", "k"};
const std::vector<std::string> kIntegerLimits = {"read", "peak-vnni"};
const std::vector<std::string> kFloatLimits = {"read", "peak-fma", "peak-bf16"};
constexpr const char* kLinearBytes = "codes + scales (and zeros) + x + y (bf16), each once";

std::vector<Op> make_ops() {
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
  ops.push_back({.name = "rmsnorm",
                 .what = "rows normalised, bf16; add: with a residual stream; quant: s8 codes and scales out",
                 .sizes = {"n"},
                 .shapes = {{"hidden", {2048}}},
                 .variants = {"plain", "add", "quant"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"rmsnorm"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"vllm", "vllm"}, {"torch", "torch"}},
                 .bytes_model = "x + weight + y (+ residual stream, read and written), each once",
                 .parts = rmsnorm_parts,
                 .operations = nullptr,
                 .make = make_rmsnorm});
  ops.push_back({.name = "geglu",
                 .what = "GELU (exact erf) of the first half of each row times the second, bf16",
                 .sizes = {"n"},
                 .shapes = {{"mlp", {6656}}},
                 .variants = {},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"geglu"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "gate and up + y (bf16), each once",
                 .parts = gated_parts,
                 .operations = nullptr,
                 .make = make_geglu});
  ops.push_back({.name = "swiglu",
                 .what = "SiLU of the first half of each row times the second, bf16",
                 .sizes = {"n"},
                 .shapes = {{"mlp", {3072}}, {"mlp-1.7b", {6144}}},
                 .variants = {},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"swiglu"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "gate and up + y (bf16), each once",
                 .parts = gated_parts,
                 .operations = nullptr,
                 .make = make_swiglu});
  ops.push_back({.name = "headnorm",
                 .what = "RMSNorm of the heads of queries and keys in place, each with its own weight; classes: the type",
                 .sizes = {"q_heads", "k_heads", "head_dim"},
                 .shapes = {{"talker", {16, 8, 128}}},
                 .variants = {"bf16", "f32"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"headnorm"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "the heads, read and written, and the weights",
                 .parts = headnorm_parts,
                 .operations = nullptr,
                 .make = make_headnorm});
  ops.push_back({.name = "layernorm",
                 .what = "rows normalised around their mean, with weight and bias; classes: the type",
                 .sizes = {"n"},
                 .shapes = {{"encoder", {512}}, {"convnext", {1024}}},
                 .variants = {"f32", "bf16"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"layernorm"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "x + weight + bias + y, each once",
                 .parts = layernorm_parts,
                 .operations = nullptr,
                 .make = make_layernorm});
  ops.push_back({.name = "activation",
                 .what = "a function of every element, fp32; snake: SnakeBeta, also on bf16",
                 .sizes = {"n"},
                 .shapes = {{"snake-96", {96}}, {"snake-192", {192}}, {"snake-384", {384}}, {"snake-768", {768}}},
                 .variants = {"snake", "snake-bf16", "relu", "elu", "gelu", "silu", "sigmoid", "tanh", "exp"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"activation"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "x + y (+ the columns of SnakeBeta), each once",
                 .parts = activation_parts,
                 .operations = nullptr,
                 .make = make_activation});
  ops.push_back({.name = "headgate",
                 .what = "a sigmoid gate for each head; values: times the output of the head, 256 elements",
                 .sizes = {"h", "k"},
                 .shapes = {{"gate", {8, 2048}}},
                 .variants = {"gates", "values"},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"headgate"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch", "torch"}},
                 .bytes_model = "x + weights + gates (fp32), or x + weights + values + output (bf16), each once",
                 .parts = headgate_parts,
                 .operations = headgate_operations,
                 .make = make_headgate});
  ops.push_back({.name = "rope",
                 .what = "leading dimensions of each head rotated in place, bf16",
                 .sizes = {"heads", "head_dim", "rot"},
                 .shapes = {{"partial", {10, 256, 64}}, {"whole", {10, 256, 256}}},
                 .variants = {},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"rope"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"vllm", "vllm"}},
                 .bytes_model = "table + the rotated part of x, read and written",
                 .parts = rope_parts,
                 .operations = nullptr,
                 .make = make_rope});
  ops.push_back({.name = "quantize",
                 .what = "rows of bf16 -> s8 codes and a scale each, as class exact has them",
                 .sizes = {"k"},
                 .shapes = {{"hidden", {2048}}, {"down", {6656}}},
                 .variants = {},
                 .most_rows = 1 << 16,
                 .group = "",
                 .cold = false,
                 .registry = {"quantize"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"vllm", "vllm"}},
                 .bytes_model = "x (bf16) + codes and scales, each once",
                 .parts = quantize_parts,
                 .operations = nullptr,
                 .make = make_quantize});
  ops.push_back(
      {.name = "gather",
       .what = "rows of a table by id -> bf16; classes: the table, plain is row-major bf16; other ids in every call",
       .sizes = kMatrix,
       .shapes = {{"embedding", {131072, 2048}, 0, 105}},
       .variants = {"tg4", "w8s", "w16", "plain"},
       .most_rows = 4096,
       .group = "128",
       .cold = true,
       .registry = {"gather"},
       .weights = {},
       .peers = {},
       .limits = {},
       .workers = {},
       .bytes_model = "the rows with their scales + output (bf16), each once; whole cache lines of packed blocks are more",
       .parts = gather_parts,
       .operations = nullptr,
       .make = make_gather});
  ops.push_back({.name = "pack",
                 .what = "codes (a byte each) -> tg4",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {},
                 .most_rows = 0,
                 .group = "128",
                 .cold = true,
                 .registry = {"pack"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch-int4", "torch-int4"}},
                 .bytes_model = "source codes (one byte each) + packed codes, each once",
                 .parts = pack_parts,
                 .operations = nullptr,
                 .make = make_pack});
  ops.push_back({.name = "dequant",
                 .what = "tg4 -> bf16 rows",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {},
                 .most_rows = 0,
                 .group = "128",
                 .cold = true,
                 .registry = {"dequant"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch-int4", "torch-int4"}},
                 .bytes_model = "codes + scales (and zeros) + output (bf16), each once",
                 .parts = dequant_parts,
                 .operations = nullptr,
                 .make = make_dequant});
  ops.push_back(
      {.name = "model",
       .what = "a whole model in a worker: M tokens after `depth` others (M = 1: a step of decoding)",
       .sizes = {"depth", "megabytes"},
       .shapes = {{"start", {16, 512}}, {"deep", {4096, 512}}},
       .variants = {},
       .most_rows = 8192,
       .group = "",
       .cold = true,
       .registry = {},
       .weights = {},
       .peers = {},
       .limits = {"read"},
       .workers = {{"llama-q4_0", "llama-q4_0"}, {"llama-q4_k_m", "llama-q4_k_m"}, {"llama-q4_k_m-plain", "llama-q4_k_m-plain"}},
       .only_workers = true,
       .bytes_model = "workers: weights and cache, as each says; the read arm: `megabytes`",
       .parts = model_parts,
       .operations = nullptr,
       .make = make_model});
  // M: frames of 80 ms. The parts differ in what a worker does, so the name of the shape says it.
  ops.push_back({.name = "speech",
                 .what = "Qwen3-TTS in a worker: M frames after a prompt of `depth` rows, by part (the name of the shape)",
                 .sizes = {"depth", "megabytes"},
                 .shapes = {{"talker", {23, 512}, 1},
                            {"predictor", {23, 512}, 1},
                            {"codec-1", {23, 512}, 1},
                            {"codec-4", {23, 512}, 4},
                            {"codec-50", {23, 512}, 50},
                            {"whole", {23, 512}, 24},
                            {"first", {23, 512}, 2}},
                 .variants = {},
                 .most_rows = 8192,
                 .group = "",
                 .cold = true,
                 .registry = {},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"qwen-tts-bf16", "qwen-tts-bf16"},
                             {"qwen-tts-fp32", "qwen-tts-fp32"},
                             {"llama-speech-q4_0", "llama-speech-q4_0"},
                             {"llama-speech-q8_0", "llama-speech-q8_0"}},
                 .only_workers = true,
                 .bytes_model = "workers: weights, as each says; the read arm: `megabytes`",
                 .parts = model_parts,
                 .operations = nullptr,
                 .make = make_model});
  return ops;
}

}  // namespace

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops = make_ops();
  return ops;
}

const Op* find_op(const std::string& name) {
  const std::string wanted = name == "gemv" ? "w4a16" : name;
  for (const Op& op : all_ops()) {
    if (op.name == wanted) return &op;
  }
  return nullptr;
}

const Op& op_of(const Case& c) {
  const Op* op = find_op(c.op);
  if (op == nullptr) throw std::runtime_error(fmt::format("unknown operation {}", c.op));
  return *op;
}

std::optional<Shape> parse_shape(const Op& op, const std::string& text) {
  for (const Shape& s : op.shapes) {
    if (s.name == text) return s;
  }
  Shape shape;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1 || value > (int64_t{1} << 31)) return std::nullopt;
    shape.sizes.push_back(value);
    if (next == end) break;
    if (*next != 'x') return std::nullopt;
    at = next + 1;
  }
  if (op.most_rows > 0 && shape.sizes.size() == op.sizes.size() + 1) {
    shape.m = shape.sizes[0];
    shape.sizes.erase(shape.sizes.begin());
  }
  if (shape.sizes.size() != op.sizes.size()) return std::nullopt;
  shape.name = fmt::format("{}", fmt::join(shape.sizes, "x"));
  return shape;
}

std::string shapes_text(const Op& op) {
  std::string sizes;
  for (const std::string& size : op.sizes) {
    if (!sizes.empty()) sizes += 'x';
    for (const char c : size) sizes += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  std::string out;
  for (const Shape& shape : op.shapes) {
    if (shape.name.find_first_not_of("0123456789x") != std::string::npos) out += shape.name + ", ";
  }
  return out + "all, " + sizes + (op.most_rows > 0 ? " or Mx" + sizes : "");
}

}  // namespace omnibench
