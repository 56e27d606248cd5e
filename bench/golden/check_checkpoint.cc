// SPDX-License-Identifier: Apache-2.0
// Checkpoints of GPTQ, AWQ and compressed-tensors: what omni_repack and omni_pack_scales make of their words must dequantise to the
// file's weights, and a linear layer on one-hot rows of x must give those weights back, through the act-order permutation if any.
#include <bit>

#include "bench/golden/checks.h"

namespace omnibench {
namespace {

struct ZeroPoints {
  omni_zeros kind = OMNI_ZEROS_SYMMETRIC;
  std::string tensor;  ///< "" when symmetric
  std::vector<uint32_t> words;
};

/// What a file holds, in the library's terms.
struct Checkpoint {
  omni_format format = OMNI_FORMAT_NONE;
  std::string weight_tensor;
  std::vector<uint32_t> words;
  std::vector<uint16_t> scales;  ///< bf16
  bool scales_by_channel = false;
  std::vector<ZeroPoints> zeros;  ///< versions of the same
  std::vector<int32_t> g_idx;     ///< empty: none
};

std::vector<uint32_t> words(const GoldenFile& file, const std::string& tensor, const std::vector<int64_t>& shape) {
  return file.read<uint32_t>(tensor, "I32", shape);
}

Checkpoint read_gptq(const GoldenFile& file) {
  const int64_t n = file.n(), k = file.k(), groups = file.groups();
  return {OMNI_FORMAT_GPTQ,
          "qweight",
          words(file, "qweight", {(k + 7) / 8, n}),
          file.read<uint16_t>("scales", "BF16", {groups, n}),
          false,
          {{OMNI_ZEROS_GPTQ_V1, "qzeros", words(file, "qzeros", {groups, n / 8})},
           {OMNI_ZEROS_GPTQ_V2, "qzeros_v2", words(file, "qzeros_v2", {groups, n / 8})}},
          file.read<int32_t>("g_idx", "I32", {k})};
}

Checkpoint read_awq(const GoldenFile& file) {
  const int64_t n = file.n(), groups = file.groups();
  return {OMNI_FORMAT_AWQ,
          "qweight",
          words(file, "qweight", {file.k(), n / 8}),
          file.read<uint16_t>("scales", "BF16", {groups, n}),
          false,
          {{OMNI_ZEROS_AWQ, "qzeros", words(file, "qzeros", {groups, n / 8})}},
          {}};
}

Checkpoint read_compressed_tensors(const GoldenFile& file) {
  const int64_t n = file.n(), k = file.k(), groups = file.groups();
  if (file.read<int64_t>("weight_shape", "I64", {2}) != std::vector<int64_t>{n, k}) file.fail("weight_shape is not [N, K]");
  ZeroPoints zeros;
  if (file.has("weight_zero_point")) {
    zeros = {OMNI_ZEROS_CT_PACKED, "weight_zero_point", words(file, "weight_zero_point", {(n + 7) / 8, groups})};
  }
  return {OMNI_FORMAT_CT_PACKED,
          "weight_packed",
          words(file, "weight_packed", {n, (k + 7) / 8}),
          file.read<uint16_t>("weight_scale", "BF16", {n, groups}),
          true,
          {zeros},
          {}};
}

Checkpoint read_checkpoint(const GoldenFile& file) {
  if (file.n() % 8 != 0) file.fail("N is no multiple of 8");
  // Unit rows are K * K elements of x.
  if (file.k() > 8192) file.fail("K is above 8192, more than a golden checkpoint may have");
  if (file.kind().starts_with("gptq_")) return read_gptq(file);
  if (file.kind().starts_with("awq_")) return read_awq(file);
  return read_compressed_tensors(file);
}

/// [ceil(K/g)][N][2] in fp32: scale and (8 - zero point) * scale, by the definition.
std::vector<float> expected_scales(const GoldenFile& file, const Checkpoint& checkpoint) {
  const int64_t n = file.n(), groups = file.groups();
  std::vector<uint8_t> points(static_cast<size_t>(groups * n), 8);
  if (file.has("expect_zeros")) points = file.read<uint8_t>("expect_zeros", "U8", {groups, n});
  const std::vector<float> scales = widened(checkpoint.scales);
  std::vector<float> out;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t c = 0; c < n; ++c) {
      const float scale = scales[static_cast<size_t>(checkpoint.scales_by_channel ? c * groups + g : g * n + c)];
      out.push_back(scale);
      out.push_back(static_cast<float>(8 - points[static_cast<size_t>(g * n + c)]) * scale);
    }
  }
  return out;
}

Buffer pack_scales(const GoldenFile& file, const Checkpoint& checkpoint, const ZeroPoints& zeros) {
  Buffer out(static_cast<size_t>(file.groups() * file.n() * 2) * sizeof(float));
  auto args = omni::sized<omni_scales_args>();
  args.scale_type = OMNI_DTYPE_BF16;
  args.zeros_kind = static_cast<uint16_t>(zeros.kind);
  args.layout = tg4_layout(file.n(), file.k(), file.group(), OMNI_DTYPE_F32);
  args.scales = checkpoint.scales.data();
  args.scales_by_channel = checkpoint.scales_by_channel ? 1 : 0;
  args.zeros = zeros.kind == OMNI_ZEROS_SYMMETRIC ? nullptr : zeros.words.data();
  args.out = out.data();
  args.out_bytes = out.size();
  omni::pack_scales(args);
  return out;
}

/// Columns (inputs) of [N][K] in the order of a permutation: position i holds input permutation[i].
template <typename T>
std::vector<T> gathered(const std::vector<T>& values, int64_t k, const std::vector<int32_t>& permutation) {
  std::vector<T> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / static_cast<size_t>(k), column = i % static_cast<size_t>(k);
    out[i] = values[row * static_cast<size_t>(k) + static_cast<size_t>(permutation[column])];
  }
  return out;
}

void check_words(const Session& session, const GoldenFile& file, const Checkpoint& checkpoint, const std::vector<uint8_t>& codes,
                 FileRecord* record) {
  const auto source = std::as_bytes(std::span(checkpoint.words));
  record->attempt(checkpoint.weight_tensor + " as codes", "", [&] {
    for (const auto& pool : session.pools) {
      const Buffer found = repacked(file, checkpoint.format, source, OMNI_FORMAT_CODES_U8, "", *pool);
      expect_rows(GoldenRows::of(std::span(codes), file.n(), file.k()), found.data(), file.n(),
                  std::to_string(pool->threads()) + " threads");
    }
  });
}

void check_scales(const GoldenFile& file, const Checkpoint& checkpoint, FileRecord* record) {
  const std::vector<float> expected = expected_scales(file, checkpoint);
  for (const ZeroPoints& zeros : checkpoint.zeros) {
    const std::string what = zeros.tensor.empty() ? "scales" : "scales with " + zeros.tensor;
    record->attempt(what, "", [&] {
      const Buffer found = pack_scales(file, checkpoint, zeros);
      expect_rows(GoldenRows::of(std::span(expected), file.groups(), file.n() * 2), found.data(), file.groups(),
                  "[group][2 * channel + (0 scale, 1 zero)]");
    });
  }
}

/// Packed words of every pack kernel must unpack to the codes in the order of the permutation.
void check_packed(const Session& session, const GoldenFile& file, const Checkpoint& checkpoint, const std::vector<uint8_t>& codes,
                  FileRecord* record) {
  const auto source = std::as_bytes(std::span(checkpoint.words));
  const std::vector<int32_t>* g_idx = checkpoint.g_idx.empty() ? nullptr : &checkpoint.g_idx;
  for (const Row& row : rows_of("pack")) {
    record->attempt(checkpoint.weight_tensor + " packed", row.name, [&] {
      require_usable(row);
      for (const auto& pool : session.pools) {
        std::vector<int32_t> permutation;
        const Buffer packed = repacked(file, checkpoint.format, source, OMNI_FORMAT_TG4, row.name, *pool, g_idx, &permutation);
        const Buffer found = repacked(file, OMNI_FORMAT_TG4, packed.bytes(), OMNI_FORMAT_CODES_U8, "", *pool);
        const std::vector<uint8_t> expected = g_idx != nullptr ? gathered(codes, file.k(), permutation) : codes;
        expect_rows(GoldenRows::of(std::span(expected), file.n(), file.k()), found.data(), file.n(),
                    "as codes, columns in packed order, " + std::to_string(pool->threads()) + " threads");
      }
    });
  }
}

/// x[i] = the i-th unit vector, so that y[i][n] is the weight of input i and channel n, rounded once as the dequantised one is.
template <typename T>
std::vector<std::byte> unit_rows(int64_t k, T one) {
  std::vector<T> x(static_cast<size_t>(k * k), T{0});
  for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(i * k + i)] = one;
  const auto bytes = std::as_bytes(std::span(x));
  return {bytes.begin(), bytes.end()};
}

void check_layers(const Session& session, LinearProblem problem, const std::vector<uint16_t>& by_input, FileRecord* record) {
  const int64_t n = problem.n(), k = problem.k();
  const GoldenRows golden = GoldenRows::of(std::span(by_input), k, n);
  const GoldenSource source = [&](const std::byte*) { return golden; };
  problem.rows = k;
  problem.y_type = OMNI_DTYPE_BF16;
  // K rows in batches of one, of a few and of many; that any M does is what the w4a16 files show.
  const LinearRange range = {{1, 3, 16}, true};
  problem.x = unit_rows<uint16_t>(k, 0x3F80);
  check_linear(session, problem, range, "expect_dequant_bf16 by class group on unit rows, [input][channel]", source, record);
  problem.numerics = OMNI_NUMERICS_TORCH;
  problem.x_type = OMNI_DTYPE_F32;
  problem.x = unit_rows<float>(k, 1);
  check_linear(session, problem, range, "expect_dequant_bf16 by class torch on unit rows, [input][channel]", source, record);
}

}  // namespace

void check_checkpoint(const Session& session, GoldenFile& file, FileRecord* record) {
  file.read_shape();
  const std::vector<uint8_t> codes = file.codes();
  const Checkpoint checkpoint = read_checkpoint(file);
  const std::vector<uint16_t> weights = file.read<uint16_t>("expect_dequant_bf16", "BF16", {file.n(), file.k()});
  check_words(session, file, checkpoint, codes, record);
  check_scales(file, checkpoint, record);
  check_packed(session, file, checkpoint, codes, record);

  std::vector<int32_t> permutation;
  const bool act_order = !checkpoint.g_idx.empty();
  const Buffer packed = repacked(file, checkpoint.format, std::as_bytes(std::span(checkpoint.words)), OMNI_FORMAT_TG4, "",
                                 session.first_pool(), act_order ? &checkpoint.g_idx : nullptr, &permutation);
  const Buffer scales = pack_scales(file, checkpoint, checkpoint.zeros.front());
  LinearProblem problem;
  problem.weights = {tg4_layout(file.n(), file.k(), file.group(), OMNI_DTYPE_F32), &packed, &scales};
  problem.k_permutation = act_order ? permutation.data() : nullptr;
  check_dequantised(session, problem.weights, act_order ? gathered(weights, file.k(), permutation) : weights,
                    act_order ? "expect_dequant_bf16, inputs in packed order" : "expect_dequant_bf16", record);
  check_layers(session, problem, transposed(weights, file.n(), file.k()), record);
}

}  // namespace omnibench
