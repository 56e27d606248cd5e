// SPDX-License-Identifier: Apache-2.0
#include "reference/io/linear_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "tests/support/int4_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace ref {
namespace {

using nlohmann::json;
using omni_files::Int4Module;
using omni_files::SafetensorsWriter;

constexpr const char* kModule = "model.layers.0.mlp.up_proj";

json gptq_config(int64_t group, bool symmetric = false, bool act_order = false, const std::string& format = "gptq") {
  return {{"quant_method", "gptq"},     {"bits", 4}, {"group_size", group}, {"sym", symmetric}, {"desc_act", act_order},
          {"checkpoint_format", format}};
}
json awq_config(int64_t group, bool zero_point = true) {
  return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", group}, {"zero_point", zero_point}, {"version", "gemm"}};
}
json compressed_config(const json& weights) {
  json all = {{"num_bits", 4}, {"type", "int"}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 32}};
  all.update(weights);
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", all}}}}}};
}

std::optional<QuantConfig> read_config(const json& quant) {
  return read_quant_config({{"quantization_config", quant}}, "config.json");
}

// A checkpoint on disk with one module.
class Source {
 public:
  Source(const SafetensorsWriter& writer, const json& quant, int64_t n, int64_t k, const std::string& module = kModule) {
    writer.write(directory_ / "model.safetensors");
    checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(directory_.path()));
    linear = find_linear(*checkpoint_, quant.is_null() ? std::nullopt : read_config(quant), module, n, k);
  }
  std::vector<float> rows(int64_t n0, int64_t n1) const {
    std::vector<float> out(static_cast<size_t>((n1 - n0) * linear.k));
    read_rows(linear, n0, n1, out.data());
    return out;
  }
  std::vector<float> rows() const { return rows(0, linear.n); }

  LinearSource linear;

 private:
  omni_files::TemporaryDirectory directory_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

// The kernels' own reading of the same tensors: packed as tg4 with fp32 scales, dequantised.
std::vector<float> through_kernels(const LinearSource& source) {
  std::vector<int32_t> codes(source.codes->bytes().size() / 4), zeros;
  std::memcpy(codes.data(), source.codes->bytes().data(), source.codes->bytes().size());
  std::vector<std::byte> scales(source.scales->bytes().begin(), source.scales->bytes().end());
  if (source.zeros != nullptr) zeros = source.zeros->tensor->as<int32_t>();
  omni_layout layout{};
  layout.size = sizeof layout;
  EXPECT_EQ(omni_layout_init(&layout, OMNI_FORMAT_TG4, source.n, source.k, static_cast<uint32_t>(source.group), OMNI_DTYPE_F32),
            OMNI_OK);
  size_t code_bytes = 0, scale_bytes = 0;
  EXPECT_EQ(omni_packed_size(&layout, &code_bytes), OMNI_OK);
  EXPECT_EQ(omni_scales_size(&layout, &scale_bytes), OMNI_OK);
  void* packed = std::aligned_alloc(64, (code_bytes + 63) / 64 * 64);
  std::vector<float> pairs(scale_bytes / 4), out(static_cast<size_t>(source.n * source.k));
  std::vector<int32_t> permutation(static_cast<size_t>(source.k));
  omni_repack_args repack{};
  repack.size = sizeof(omni_repack_args);
  repack.source_format = static_cast<uint16_t>(source.codes_format);
  repack.destination_format = OMNI_FORMAT_TG4;
  repack.n = source.n;
  repack.k = source.k;
  repack.source = codes.data();
  repack.source_bytes = codes.size() * 4;
  repack.destination = packed;
  repack.destination_bytes = code_bytes;
  if (!source.g_idx.empty()) {
    repack.g_idx = source.g_idx.data();
    repack.group = static_cast<uint32_t>(source.group);
    repack.k_permutation = permutation.data();
  }
  EXPECT_EQ(omni_repack(&repack), OMNI_OK) << omni_last_error();
  const std::string& dtype = source.scales->dtype();
  omni_scales_args pack{};
  pack.size = sizeof(omni_scales_args);
  pack.scale_type = static_cast<uint16_t>(dtype == "F16" ? OMNI_DTYPE_F16 : dtype == "BF16" ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32);
  pack.zeros_kind = static_cast<uint16_t>(source.zeros_kind);
  pack.layout = layout;
  pack.scales = scales.data();
  pack.scales_by_channel = source.scales_by_channel ? 1 : 0;
  pack.zeros = zeros.empty() ? nullptr : zeros.data();
  pack.out = pairs.data();
  pack.out_bytes = scale_bytes;
  EXPECT_EQ(omni_pack_scales(&pack), OMNI_OK) << omni_last_error();
  omni_dequant_args dequant{};
  dequant.size = sizeof(omni_dequant_args);
  dequant.out_type = OMNI_DTYPE_F32;
  dequant.order = OMNI_ORDER_NK;
  dequant.layout = layout;
  dequant.codes = packed;
  dequant.codes_bytes = code_bytes;
  dequant.scales = pairs.data();
  dequant.scales_bytes = scale_bytes;
  dequant.n0 = 0;
  dequant.n1 = source.n;
  dequant.k0 = 0;
  dequant.k1 = source.k;
  dequant.out = out.data();
  dequant.ld_out = source.k;
  EXPECT_EQ(omni_dequantize(&dequant), OMNI_OK) << omni_last_error();
  std::free(packed);
  if (source.g_idx.empty()) return out;
  std::vector<float> ordered(out.size());
  for (int64_t row = 0; row < source.n; ++row) {
    for (int64_t i = 0; i < source.k; ++i) {
      ordered[static_cast<size_t>(row * source.k + permutation[static_cast<size_t>(i)])] =
          out[static_cast<size_t>(row * source.k + i)];
    }
  }
  return ordered;
}

std::vector<float> weights(const Int4Module& module) {
  std::vector<float> all;
  for (int64_t row = 0; row < module.n; ++row) {
    for (int64_t i = 0; i < module.k; ++i) all.push_back(module.weight(row, i));
  }
  return all;
}

void check_source(const Source& source, const Int4Module& module, bool symmetric) {
  const std::vector<float> expected = weights(module);
  EXPECT_EQ(source.rows(), expected);
  if (module.n > 3) {
    const std::vector<float> slice = source.rows(1, module.n - 1);
    EXPECT_TRUE(std::equal(slice.begin(), slice.end(), expected.begin() + module.k));
  }
  std::vector<uint8_t> codes(module.codes.size()), zeros;
  std::vector<float> scales;
  read_codes(source.linear, 0, module.n, codes.data());
  read_scales(source.linear, &scales, &zeros);
  EXPECT_EQ(codes, module.codes);
  EXPECT_EQ(scales, module.scales);
  EXPECT_EQ(zeros, module.zeros);
  EXPECT_EQ(source.linear.zeros_kind == OMNI_ZEROS_SYMMETRIC, symmetric);
  EXPECT_EQ(source.linear.g_idx, module.g_idx);
  EXPECT_EQ(through_kernels(source.linear), expected);
}

// Whole words and ragged ones, short groups, one group for the row; every format and type of scales; padding nibbles are 15.
TEST(LinearSource, ReadsEveryFormatExactly) {
  struct Shape {
    int64_t n, k, group;
  };
  for (const Shape& shape : {Shape{16, 64, 32}, Shape{20, 80, 32}, Shape{24, 256, 128}, Shape{9, 44, 32}, Shape{16, 96, 96}}) {
    for (const bool symmetric : {false, true}) {
      for (const char* type : {"F16", "BF16", "F32"}) {
        SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.k) + " " + type + (symmetric ? " sym" : ""));
        Int4Module module = Int4Module::varied(shape.n, shape.k, shape.group, symmetric);
        if (std::string(type) == "BF16") {
          for (float& scale : module.scales) scale = widen_bf16(round_bf16(scale));
        }
        const int64_t group = shape.group == shape.k ? -1 : shape.group;
        SafetensorsWriter v1, v2, awq, packed;
        add_gptq(&v1, kModule, module, false, type);
        add_gptq(&v2, kModule, module, true, type);
        add_awq(&awq, kModule, module, type);
        add_compressed_tensors(&packed, kModule, module, symmetric, type);
        check_source(Source(v1, gptq_config(group, symmetric), shape.n, shape.k), module, symmetric);
        check_source(Source(v2, gptq_config(group, symmetric, false, "gptq_v2"), shape.n, shape.k), module, symmetric);
        check_source(Source(awq, awq_config(group, !symmetric), shape.n, shape.k), module, symmetric);
        const json weights = group == -1 ? json{{"strategy", "channel"}, {"group_size", nullptr}, {"symmetric", symmetric}}
                                         : json{{"group_size", group}, {"symmetric", symmetric}};
        check_source(Source(packed, compressed_config(weights), shape.n, shape.k), module, symmetric);
      }
    }
  }
}

TEST(LinearSource, ReadsDenseTensors) {
  const std::vector<float> values = {1.5F, -0x1p-20F, 65504.0F, 0x1p-24F, -3.0F, 0.0F};
  SafetensorsWriter full, half, brain;
  full.add(std::string(kModule) + ".weight", "F32", {2, 3}, values);
  half.add(std::string(kModule) + ".weight", "F16", {2, 3}, std::vector<uint16_t>{0x3E00, 0x8010, 0x7BFF, 0x0001, 0xC200, 0});
  brain.add(std::string(kModule) + ".weight", "BF16", {2, 3}, std::vector<uint16_t>{0x3FC0, 0xB580, 0x477F, 0x3380, 0xC040, 0});
  EXPECT_EQ(Source(full, nullptr, 2, 3).rows(), values);
  EXPECT_EQ(Source(half, nullptr, 2, 3).rows(), values);
  EXPECT_EQ(Source(half, nullptr, 2, 3).rows(1, 2), std::vector<float>(values.begin() + 3, values.end()));
  std::vector<float> rounded = values;
  rounded[2] = 65280.0F;  // 0x477F
  EXPECT_EQ(Source(brain, nullptr, 2, 3).rows(), rounded);
  // Dense beside a config that quantises others: the tensors decide.
  EXPECT_EQ(Source(brain, gptq_config(32), 2, 3).rows(), rounded);
}

// AC-010: the same weights with zero points stored minus one, and as they are.
TEST(Acceptance, GptqFormatsDifferInStoredZeros) {
  const Int4Module module = Int4Module::constant(16, 64, 32, 11, 8, 0.5F);
  for (const bool v2 : {false, true}) {
    SafetensorsWriter writer;
    add_gptq(&writer, kModule, module, v2);
    writer.add(std::string(kModule) + ".qzeros", "I32", {2, 2}, std::vector<uint32_t>(4, v2 ? 0x88888888u : 0x77777777u));
    const Source source(writer, gptq_config(32, false, false, v2 ? "gptq_v2" : "gptq"), 16, 64);
    EXPECT_EQ(source.rows(), std::vector<float>(16 * 64, 1.5F));
    EXPECT_EQ(through_kernels(source.linear), std::vector<float>(16 * 64, 1.5F));
  }
}

// A config that does not name the format is v1; newer ones call it `format`.
TEST(Acceptance, GptqFormatHasTwoKeysAndADefault) {
  SafetensorsWriter writer;
  add_gptq(&writer, kModule, Int4Module::constant(16, 64, 32, 11, 6, 0.5F), false);
  json config = gptq_config(32);
  config.erase("checkpoint_format");
  EXPECT_EQ(Source(writer, config, 16, 64).rows(), std::vector<float>(16 * 64, 2.5F));
  config["format"] = "gptq_v2";
  EXPECT_EQ(Source(writer, config, 16, 64).rows(), std::vector<float>(16 * 64, 3.0F));
  config["format"] = "gptq";
  EXPECT_EQ(Source(writer, config, 16, 64).rows(), std::vector<float>(16 * 64, 2.5F));
}

// GPTQ v1 cannot store a zero point of 0; what it stores as 15 is 16, as the kernels have it.
TEST(Acceptance, GptqZeroOfSixteen) {
  SafetensorsWriter writer;
  add_gptq(&writer, kModule, Int4Module::constant(16, 64, 32, 11, 0, 0.5F), false);
  const Source source(writer, gptq_config(32), 16, 64);
  EXPECT_EQ(source.rows(), std::vector<float>(16 * 64, -2.5F));
  EXPECT_EQ(through_kernels(source.linear), source.rows());
  std::vector<float> scales;
  std::vector<uint8_t> zeros;
  read_scales(source.linear, &scales, &zeros);
  EXPECT_EQ(zeros, std::vector<uint8_t>(32, 16));
}

// AC-011.
TEST(Acceptance, AwqZeroPointOfNothing) {
  SafetensorsWriter writer;
  add_awq(&writer, kModule, Int4Module::constant(16, 64, 32, 5, 0, 0.25F));
  const Source source(writer, awq_config(32), 16, 64);
  EXPECT_EQ(source.rows(), std::vector<float>(16 * 64, 1.25F));
  EXPECT_EQ(through_kernels(source.linear), std::vector<float>(16 * 64, 1.25F));
}

// AC-012.
TEST(Acceptance, ActOrderAssignsInputsToGroups) {
  Int4Module module = Int4Module::constant(8, 256, 128, 9, 8, 1);
  for (size_t row = 0; row < 8; ++row) module.scales[row * 2 + 1] = 100;
  for (int32_t i = 0; i < 256; ++i) module.g_idx.push_back(i % 2);
  SafetensorsWriter gptq, packed;
  add_gptq(&gptq, kModule, module);
  add_compressed_tensors(&packed, kModule, module, false, "F16");
  for (const Source& source : {Source(gptq, gptq_config(128, false, true), 8, 256),
                               Source(packed, compressed_config({{"group_size", 128}, {"actorder", "group"}}), 8, 256)}) {
    const std::vector<float> rows = source.rows();
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], i % 2 == 0 ? 1.0F : 100.0F) << i;
    EXPECT_EQ(std::accumulate(rows.begin(), rows.begin() + 256, 0.0F), 12928.0F);
    EXPECT_EQ(through_kernels(source.linear), rows);
  }
}

// A permutation and a short last group; and the placeholder that compressed-tensors stores before there is an order.
TEST(Acceptance, ActOrderWithAShortGroup) {
  Int4Module module = Int4Module::varied(16, 80, 32, false);
  for (int32_t i = 0; i < 80; ++i) module.g_idx.push_back((i * 7 + 3) % 80 / 32);
  SafetensorsWriter gptq, packed;
  add_gptq(&gptq, kModule, module);
  add_compressed_tensors(&packed, kModule, module, false, "F16");
  check_source(Source(gptq, gptq_config(32, false, true), 16, 80), module, false);
  const json ordered = compressed_config({{"actorder", "group"}});
  check_source(Source(packed, ordered, 16, 80), module, false);
  module.g_idx.clear();
  packed.add(std::string(kModule) + ".weight_g_idx", "I32", {80}, std::vector<int32_t>(80, -1));
  check_source(Source(packed, ordered, 16, 80), module, false);
}

// AC-013.
TEST(Acceptance, OneGroupForTheWholeRow) {
  const Int4Module module = Int4Module::constant(16, 96, 96, 9, 8, 0.5F);
  SafetensorsWriter gptq, packed;
  add_gptq(&gptq, kModule, module);
  add_compressed_tensors(&packed, kModule, module, true);
  for (const Source& source : {Source(gptq, gptq_config(-1), 16, 96),
                               Source(packed, compressed_config({{"strategy", "channel"}, {"symmetric", true}}), 16, 96)}) {
    EXPECT_EQ(source.linear.group, 96);
    EXPECT_EQ(source.rows(), std::vector<float>(16 * 96, 0.5F));
    EXPECT_EQ(through_kernels(source.linear), source.rows());
  }
}

// AC-014: eight inputs with the word 0x76543210 each.
TEST(Acceptance, AwqOrderOfColumns) {
  SafetensorsWriter writer;
  add_awq(&writer, kModule, Int4Module::constant(8, 32, 32, 0, 0, 1));
  writer.add(std::string(kModule) + ".qweight", "I32", {32, 1}, std::vector<uint32_t>(32, 0x76543210u));
  const Source source(writer, awq_config(32), 8, 32);
  const float expected[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (int64_t row = 0; row < 8; ++row) EXPECT_EQ(source.rows(row, row + 1), std::vector<float>(32, expected[row]));
  EXPECT_EQ(through_kernels(source.linear), source.rows());
}

// AC-015.
TEST(Acceptance, CompressedTensorsAreOffsetBinaryLowNibbleFirst) {
  SafetensorsWriter writer;
  add_compressed_tensors(&writer, kModule, Int4Module::constant(1, 16, 16, 0, 8, 1), true);
  writer.add(std::string(kModule) + ".weight_packed", "I32", {1, 2}, std::vector<uint32_t>{0x76543210u, 0xFEDCBA98u});
  const Source source(writer, compressed_config({{"strategy", "channel"}, {"symmetric", true}}), 1, 16);
  std::vector<float> expected(16);
  std::iota(expected.begin(), expected.end(), -8.0F);
  EXPECT_EQ(source.rows(), expected);
  EXPECT_EQ(through_kernels(source.linear), expected);
}

// AC-016.
TEST(Acceptance, CompressedTensorsPadRowsToWords) {
  SafetensorsWriter writer;
  add_compressed_tensors(&writer, kModule, Int4Module::constant(2, 12, 12, 0, 8, 1), true);
  writer.add(std::string(kModule) + ".weight_packed", "I32", {2, 2},
             std::vector<uint32_t>{0x99999999u, 0xFFFF9999u, 0xAAAAAAAAu, 0x0000AAAAu});
  const Source source(writer, compressed_config({{"strategy", "channel"}, {"symmetric", true}}), 2, 12);
  const std::vector<float> rows = source.rows();
  EXPECT_EQ(std::accumulate(rows.begin(), rows.begin() + 12, 0.0F), 12.0F);
  EXPECT_EQ(std::accumulate(rows.begin() + 12, rows.end(), 0.0F), 24.0F);
  EXPECT_EQ(through_kernels(source.linear), rows);
}

// AC-020: head gates have few outputs, whatever that leaves of a word.
TEST(Acceptance, GatesOfAnyWidth) {
  for (const int64_t n : {16, 20, 24}) {
    const Int4Module module = Int4Module::varied(n, 256, 32, false);
    SafetensorsWriter gptq, awq, packed;
    const std::string gate = "model.layers.3.self_attn.g_proj";
    add_gptq(&gptq, gate, module);
    add_awq(&awq, gate, module);
    add_compressed_tensors(&packed, gate, module, false, "F16");
    EXPECT_EQ(Source(gptq, gptq_config(32), n, 256, gate).rows(), weights(module));
    EXPECT_EQ(Source(awq, awq_config(32), n, 256, gate).rows(), weights(module));
    EXPECT_EQ(Source(packed, compressed_config(json::object()), n, 256, gate).rows(), weights(module));
  }
}

// The golden files of the kernels hold each format with its own packer's words.
TEST(LinearSource, ReadsTheKernelsGoldens) {
  struct Case {
    const char* file;
    json config;
    bool v2;
  };
  const Case cases[] = {{"awq_asym_128x256_g128", awq_config(128), false},
                        {"gptq_sym_128x256_g128", gptq_config(128, true), false},
                        {"gptq_sym_64x128_g32", gptq_config(32, true, false, "gptq_v2"), true},
                        {"gptq_asym_actorder_128x256_g128", gptq_config(128, false, true), false},
                        {"gptq_asym_actorder_64x128_g32", gptq_config(32, false, true, "gptq_v2"), true},
                        {"ct_packquant_sym_64x128_g32", compressed_config({{"symmetric", true}}), false},
                        {"ct_packquant_asym_128x256_g128", compressed_config({{"group_size", 128}}), false}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.file);
    const auto golden = omni_files::SafetensorsFile::open(std::string(OMNI_TEST_DATA) + "/int4/" + one.file + ".safetensors");
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : golden.tensors()) {
      if (name.starts_with("expect") || name == "codes" || name == "qzeros_v2") continue;
      writer.add(std::string(kModule) + "." + name, one.v2 && name == "qzeros" ? golden.at("qzeros_v2") : tensor);
    }
    const std::vector<int64_t> shape = golden.at("codes").shape;
    const Source source(writer, one.config, shape[0], shape[1]);
    std::vector<uint8_t> codes(static_cast<size_t>(shape[0] * shape[1]));
    read_codes(source.linear, 0, shape[0], codes.data());
    EXPECT_EQ(codes, golden.at("codes").as<uint8_t>());
    std::vector<uint16_t> rounded;
    for (const float value : source.rows()) rounded.push_back(round_bf16(value));
    EXPECT_EQ(rounded, golden.at("expect_dequant_bf16").as<uint16_t>());
    EXPECT_EQ(through_kernels(source.linear), source.rows());
  }
}

}  // namespace
}  // namespace ref
