// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <filesystem>

#include "bench/golden/checks.h"

namespace omnibench {
namespace {

struct Packing {
  omni_format format;
  const char* tensor;
};
constexpr Packing kPackings[] = {
    {OMNI_FORMAT_TG4, "packed_avx512"}, {OMNI_FORMAT_TORCH_AVX2, "packed_avx2"}, {OMNI_FORMAT_TORCH_DEFAULT, "packed_default"}};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

void expect_codes(const GoldenFile& file, const std::vector<uint8_t>& codes, const Buffer& found, const omni::Pool& pool) {
  expect_rows(GoldenRows::of(std::span(codes), file.n(), file.k()), found.data(), file.n(),
              std::to_string(pool.threads()) + " threads");
}

/// Every packing from codes, back to codes, and from every other packing.
void check_packings(const Session& session, const GoldenFile& file, const std::vector<uint8_t>& codes, FileRecord* record) {
  for (const Packing& to : kPackings) {
    const std::vector<uint8_t> expected = file.read<uint8_t>(to.tensor, "U8", {file.n(), file.k() / 2});
    const GoldenRows golden = GoldenRows::of(std::span(expected), file.n(), file.k() / 2);
    for (const Row& row : rows_of("pack")) {
      record->attempt(to.tensor, row.name, [&] {
        require_usable(row);
        for (const auto& pool : session.pools) {
          const std::string threads = std::to_string(pool->threads()) + " threads";
          const auto packed = repacked(file, OMNI_FORMAT_CODES_U8, std::as_bytes(std::span(codes)), to.format, row.name, *pool);
          expect_rows(golden, packed.data(), file.n(), "from codes, " + threads);
          for (const Packing& from : kPackings) {
            const std::vector<uint8_t> source = file.read<uint8_t>(from.tensor, "U8", {file.n(), file.k() / 2});
            const auto converted = repacked(file, from.format, std::as_bytes(std::span(source)), to.format, row.name, *pool);
            expect_rows(golden, converted.data(), file.n(), std::string("from ") + from.tensor + ", " + threads);
          }
        }
      });
    }
    record->attempt(std::string("codes from ") + to.tensor, "", [&] {
      for (const auto& pool : session.pools) {
        expect_codes(file, codes, repacked(file, to.format, std::as_bytes(std::span(expected)), OMNI_FORMAT_CODES_U8, "", *pool),
                     *pool);
      }
    });
  }
}

/// The operands of a w4a16 file as kernels take them, with scales of both types.
struct GoldenOperands {
  GoldenOperands(const GoldenFile& file, const omni::Pool& pool) {
    const std::vector<uint8_t> q = file.codes();
    const std::vector<uint16_t> s = file.read<uint16_t>("qscale_and_zeros", "BF16", {file.groups(), file.n(), 2});
    codes = repacked(file, OMNI_FORMAT_CODES_U8, std::as_bytes(std::span(q)), OMNI_FORMAT_TG4, "", pool);
    bf16 = Buffer(std::span<const uint16_t>(s));
    f32 = Buffer(std::span<const float>(widened(s)));
    x = file.activations(&rows);
    bf16_weights = {tg4_layout(file.n(), file.k(), file.group(), OMNI_DTYPE_BF16), &codes, &bf16};
    f32_weights = {tg4_layout(file.n(), file.k(), file.group(), OMNI_DTYPE_F32), &codes, &f32};
  }
  GoldenOperands(const GoldenOperands&) = delete;
  GoldenOperands& operator=(const GoldenOperands&) = delete;

  Buffer codes, bf16, f32;
  std::vector<uint16_t> x;
  int64_t rows = 0;
  Weights bf16_weights, f32_weights;
};

template <typename T>
void check_output(const Session& session, const LinearProblem& problem, const std::vector<T>& expected, const std::string& what,
                  FileRecord* record) {
  const GoldenRows golden = GoldenRows::of(std::span(expected), problem.rows, problem.n());
  check_linear(
      session, problem, {every_m(), true}, what, [&](const std::byte*) { return golden; }, record);
}

/// Both outputs of class group.
void check_group(const Session& session, const GoldenFile& outputs, LinearProblem problem, const std::string& suffix,
                 FileRecord* record) {
  problem.numerics = OMNI_NUMERICS_GROUP;
  problem.y_type = OMNI_DTYPE_F32;
  check_output(session, problem, outputs.read<uint32_t>("out_group_f32", "F32", {problem.rows, problem.n()}),
               "out_group_f32" + suffix, record);
  problem.y_type = OMNI_DTYPE_BF16;
  check_output(session, problem, outputs.read<uint16_t>("out_group_bf16", "BF16", {problem.rows, problem.n()}),
               "out_group_bf16" + suffix, record);
}

}  // namespace

void check_w4a16(const Session& session, GoldenFile& file, FileRecord* record) {
  file.read_shape();
  if (file.n() % 16 != 0 || file.k() % 32 != 0) file.fail("PyTorch packs only N in 16s and K in 32s");
  check_packings(session, file, file.codes(), record);
  const GoldenOperands operands(file, session.first_pool());
  const std::vector<uint16_t> weights = file.read<uint16_t>("dequant_bf16", "BF16", {file.n(), file.k()});
  check_dequantised(session, operands.bf16_weights, weights, "dequant_bf16", record);
  check_dequantised(session, operands.f32_weights, weights, "dequant_bf16 of fp32 scales", record);

  LinearProblem problem;
  problem.numerics = OMNI_NUMERICS_TORCH;
  problem.rows = operands.rows;
  problem.weights = operands.bf16_weights;
  problem.x = bytes_of(operands.x);
  problem.y_type = OMNI_DTYPE_BF16;
  check_output(session, problem, file.read<uint16_t>("out_bf16_avx512", "BF16", {problem.rows, file.n()}), "out_bf16_avx512",
               record);
  problem.x_type = problem.y_type = OMNI_DTYPE_F32;
  problem.weights = operands.f32_weights;
  problem.x = bytes_of(widened(operands.x));
  check_output(session, problem, file.read<uint32_t>("out_f32_avx512", "F32", {problem.rows, file.n()}), "out_f32_avx512", record);
}

void check_group_output(const Session& session, const GoldenFile& file, FileRecord* record) {
  const std::filesystem::path name = file.text("inputs");
  if (name.has_parent_path() || name.empty()) file.fail("\"inputs\" must name a file beside it");
  GoldenFile inputs(omni_golden::SafetensorsFile::open((std::filesystem::path(record->path).parent_path() / name).string()));
  inputs.read_shape();
  const GoldenOperands operands(inputs, session.first_pool());
  LinearProblem problem;
  problem.rows = operands.rows;
  problem.x = bytes_of(operands.x);
  problem.weights = operands.bf16_weights;
  check_group(session, file, problem, "", record);
  problem.weights = operands.f32_weights;
  check_group(session, file, problem, " of fp32 scales", record);
}

void check_group_edge(const Session& session, GoldenFile& file, FileRecord* record) {
  file.read_shape();
  const std::vector<uint8_t> codes = file.codes();
  const Buffer packed =
      repacked(file, OMNI_FORMAT_CODES_U8, std::as_bytes(std::span(codes)), OMNI_FORMAT_TG4, "", session.first_pool());
  const Buffer scales(std::span<const float>(file.read<float>("scale_and_zero_f32", "F32", {file.groups(), file.n(), 2})));
  LinearProblem problem;
  problem.x = bytes_of(file.activations(&problem.rows));
  problem.weights = {tg4_layout(file.n(), file.k(), file.group(), OMNI_DTYPE_F32), &packed, &scales};
  check_group(session, file, problem, "", record);
}

Buffer repacked(const GoldenFile& file, omni_format from, std::span<const std::byte> source, omni_format to,
                const std::string& kernel, const omni::Pool& pool, const std::vector<int32_t>* g_idx,
                std::vector<int32_t>* k_permutation) {
  const int64_t n = file.n(), k = file.k();
  // Codes are a byte each, packed formats two in a byte with padding of ours along N and K.
  Buffer out(to == OMNI_FORMAT_CODES_U8 ? static_cast<size_t>(n * k)
                                        : static_cast<size_t>((n + 15) / 16 * 16 * ((k + 31) / 32 * 32) / 2));
  const Buffer aligned(source);
  auto args = omni::sized<omni_repack_args>();
  args.source_format = static_cast<uint16_t>(from);
  args.destination_format = static_cast<uint16_t>(to);
  args.n = n;
  args.k = k;
  args.source = aligned.data();
  args.source_bytes = aligned.size();
  args.destination = out.data();
  args.destination_bytes = out.size();
  if (g_idx != nullptr) {
    k_permutation->assign(static_cast<size_t>(k), -1);
    args.g_idx = g_idx->data();
    args.group = file.group();
    args.k_permutation = k_permutation->data();
  }
  args.parallel = pool.parallel();
  repack(args, kernel);
  return out;
}

std::vector<float> widened(const std::vector<uint16_t>& bf16) {
  std::vector<float> out;
  out.reserve(bf16.size());
  for (const uint16_t bits : bf16) out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  return out;
}

std::vector<uint16_t> transposed(const std::vector<uint16_t>& values, int64_t n, int64_t k) {
  std::vector<uint16_t> out(values.size());
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < k; ++column) {
      out[static_cast<size_t>(column * n + row)] = values[static_cast<size_t>(row * k + column)];
    }
  }
  return out;
}

omni_layout tg4_layout(int64_t n, int64_t k, uint32_t group, omni_dtype scale_type) {
  return omni::make_layout(OMNI_FORMAT_TG4, n, k, group, scale_type);
}

void check_dequantised(const Session& session, const Weights& weights, const std::vector<uint16_t>& expected,
                       const std::string& what, FileRecord* record) {
  const int64_t n = weights.layout.n, k = weights.layout.k;
  const std::vector<uint16_t> by_input = transposed(expected, n, k);
  Buffer out(static_cast<size_t>(n * k * 2));
  for (const Row& row : rows_of("dequant")) {
    record->attempt(what, row.name, [&] {
      require_usable(row);
      for (const auto& pool : session.pools) {
        const std::string threads = std::to_string(pool->threads()) + " threads";
        dequantize(weights, OMNI_ORDER_NK, row.name, *pool, &out);
        expect_rows(GoldenRows::of(std::span(expected), n, k), out.data(), n, "order [N][K], " + threads);
        dequantize(weights, OMNI_ORDER_KN, row.name, *pool, &out);
        expect_rows(GoldenRows::of(std::span(by_input), k, n), out.data(), k, "order [K][N], so [input][channel], " + threads);
      }
    });
  }
}

}  // namespace omnibench
