// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "bench/golden/checks.h"

namespace omnibench {
namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// omni_repack into `bytes` bytes; the group and zero points matter to vLLM's blocks only.
Buffer packed_to(const GoldenFile& file, omni_format from, std::span<const std::byte> source, omni_format to, size_t bytes,
                 const uint8_t* zeros, const omni::Pool& pool) {
  Buffer out(bytes);
  const Buffer aligned(source);
  auto args = omni::sized<omni_repack_args>();
  args.source_format = static_cast<uint16_t>(from);
  args.destination_format = static_cast<uint16_t>(to);
  args.n = file.n();
  args.k = file.k();
  args.source = aligned.data();
  args.source_bytes = aligned.size();
  args.destination = out.data();
  args.destination_bytes = out.size();
  args.group = file.group();
  args.zeros = zeros;
  args.parallel = pool.parallel();
  repack(args, "");
  return out;
}

/// vLLM's blocks from codes, and codes from its blocks.
void check_blocks(const Session& session, const GoldenFile& file, const std::vector<uint8_t>& codes,
                  const std::vector<uint8_t>& zeros, FileRecord* record) {
  const std::vector<int64_t> shape = file.shape("vllm_packed");
  if (shape.size() != 3) file.fail("tensor \"vllm_packed\" has not three dimensions");
  const std::vector<uint8_t> blocks = file.read<uint8_t>("vllm_packed", "U8", shape);
  for (const auto& pool : session.pools) {
    const std::string threads = std::to_string(pool->threads()) + " threads";
    record->attempt("vllm_packed", "", [&] {
      const Buffer found = packed_to(file, OMNI_FORMAT_CODES_U8, std::as_bytes(std::span(codes)), OMNI_FORMAT_VLLM_W4A8,
                                     blocks.size(), zeros.data(), *pool);
      expect_rows(GoldenRows::of(std::span(blocks), shape[0], shape[1] * shape[2]), found.data(), shape[0], threads);
    });
    record->attempt("codes from vllm_packed", "", [&] {
      const Buffer found = packed_to(file, OMNI_FORMAT_VLLM_W4A8, std::as_bytes(std::span(blocks)), OMNI_FORMAT_CODES_U8,
                                     codes.size(), nullptr, *pool);
      expect_rows(GoldenRows::of(std::span(codes), file.n(), file.k()), found.data(), file.n(), threads);
    });
  }
}

template <typename T>
void check_output(const Session& session, const LinearProblem& problem, const std::vector<T>& expected, const std::string& what,
                  FileRecord* record) {
  const GoldenRows golden = GoldenRows::of(std::span(expected), problem.rows, problem.n());
  check_linear(
      session, problem, {every_m(), true}, what, [&](const std::byte*) { return golden; }, record);
}

struct Outputs {
  const char *f32, *bf16, *bias_bf16;
};

/// Every output from both kinds of rows.
void check_outputs(const Session& session, const GoldenFile& file, const Weights& weights, const char* s8_type,
                   const Outputs& outputs, FileRecord* record) {
  LinearProblem problem;
  problem.numerics = OMNI_NUMERICS_EXACT;
  problem.weights = weights;
  const std::vector<uint16_t> x = file.activations(&problem.rows);
  const auto f32 = file.read<uint32_t>(outputs.f32, "F32", {problem.rows, file.n()});
  const auto bf16 = file.read<uint16_t>(outputs.bf16, "BF16", {problem.rows, file.n()});
  const auto biased = file.read<uint16_t>(outputs.bias_bf16, "BF16", {problem.rows, file.n()});
  const std::vector<float> bias = file.read<float>("bias_f32", "F32", {file.n()});
  const std::vector<float> x_scales = file.read<float>("act_scale_f32", "F32", {problem.rows});
  for (const omni_dtype x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_S8}) {
    const bool given = x_type == OMNI_DTYPE_S8;
    const std::string suffix = given ? " of s8 rows" : "";
    problem.x_type = x_type;
    problem.x = given ? bytes_of(file.read<uint8_t>("act_s8", s8_type, {problem.rows, file.k()})) : bytes_of(x);
    problem.x_scales = given ? x_scales : std::vector<float>();
    problem.bias.clear();
    problem.y_type = OMNI_DTYPE_F32;
    check_output(session, problem, f32, outputs.f32 + suffix, record);
    problem.y_type = OMNI_DTYPE_BF16;
    check_output(session, problem, bf16, outputs.bf16 + suffix, record);
    problem.bias = bias;
    check_output(session, problem, biased, outputs.bias_bf16 + suffix, record);
  }
}

}  // namespace

void check_w4a8(const Session& session, GoldenFile& file, FileRecord* record) {
  file.read_shape();
  const std::vector<uint8_t> codes = file.codes(), zeros = file.read<uint8_t>("zeros", "U8", {file.groups(), file.n()});
  check_blocks(session, file, codes, zeros, record);

  omni_layout layout = omni::make_layout(OMNI_FORMAT_W4S, file.n(), file.k(), file.group(), OMNI_DTYPE_BF16);
  layout.flags |= OMNI_LAYOUT_ZEROS;
  const Buffer packed = packed_to(file, OMNI_FORMAT_CODES_U8, std::as_bytes(std::span(codes)), OMNI_FORMAT_W4S,
                                  omni::packed_size(layout), nullptr, session.first_pool());
  std::vector<std::byte> array = bytes_of(file.read<uint16_t>("scales", "BF16", {file.groups(), file.n()}));
  const std::vector<std::byte> points = bytes_of(zeros);
  array.insert(array.end(), points.begin(), points.end());
  const Buffer scales{std::span<const std::byte>(array)};
  check_outputs(session, file, {layout, &packed, &scales}, "I8", {"ref_out_f32", "out_bf16_vllm", "out_bias_bf16_vllm"}, record);
}

void check_w8a8(const Session& session, GoldenFile& file, FileRecord* record) {
  file.read_shape();
  const std::vector<uint8_t> weights = file.read<uint8_t>("w_s8", "U8", {file.n(), file.k()});
  const omni_layout layout = omni::make_layout(OMNI_FORMAT_W8S, file.n(), file.k(), file.group(), OMNI_DTYPE_F32);
  const Buffer packed = packed_to(file, OMNI_FORMAT_CODES_S8, std::as_bytes(std::span(weights)), OMNI_FORMAT_W8S,
                                  omni::packed_size(layout), nullptr, session.first_pool());
  const Buffer scales(std::span<const float>(file.read<float>("w_scale_f32", "F32", {file.groups(), file.n()})));
  check_outputs(session, file, {layout, &packed, &scales}, "U8", {"out_f32", "out_bf16", "out_bias_bf16"}, record);
}

}  // namespace omnibench
