// SPDX-License-Identifier: Apache-2.0
// The int4 checkpoints of the goldens, each layout against the codes, scales and zeros that all of them hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reference/io/int4_words.h"
#include "reference/io/linear_source.h"
#include "reference/pack/quantiser.h"
#include "tools/common/safetensors.h"

namespace ref {
namespace {

namespace fs = std::filesystem;

// The folder of tests/data, else of the goldens that the environment names, else empty.
fs::path golden(const std::string& name) {
  fs::path path = fs::path(OMNI_TEST_DATA) / "spark" / name;
  if (fs::exists(path)) return path;
  const char* goldens = std::getenv("OMNI_GOLDENS");
  path = goldens == nullptr ? fs::path() : fs::path(goldens) / "spark" / name;
  return fs::exists(path) ? path : fs::path();
}

std::vector<float> expected_rows(const omni_files::SafetensorsFile& plain, const std::string& module, const LinearSource& source) {
  const auto codes = plain.at(module + ".codes").as<uint8_t>(), zeros = plain.at(module + ".zero").as<uint8_t>();
  const auto scales = plain.at(module + ".scale").as<float>();
  std::vector<float> rows(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t row = i / static_cast<size_t>(source.k), input = i % static_cast<size_t>(source.k);
    const size_t g = row * static_cast<size_t>(source.groups()) + input / static_cast<size_t>(source.group);
    rows[i] = static_cast<float>(codes[i] - zeros[g]) * scales[g];
  }
  return rows;
}

void check_module(const Checkpoint& checkpoint, const std::optional<QuantConfig>& quant, const omni_files::SafetensorsFile& plain,
                  const std::string& module) {
  const std::vector<int64_t>& shape = plain.at(module + ".codes").shape;
  const LinearSource source = find_linear(checkpoint, quant, module, shape[0], shape[1]);
  ASSERT_EQ(source.dense, nullptr);
  EXPECT_EQ(source.group, 32);
  EXPECT_TRUE(source.g_idx.empty());
  std::vector<uint8_t> codes(static_cast<size_t>(shape[0] * shape[1]));
  read_codes(source, 0, shape[0], codes.data());
  EXPECT_EQ(codes, plain.at(module + ".codes").as<uint8_t>());
  std::vector<float> scales;
  std::vector<uint8_t> zeros;
  read_scales(source, &scales, &zeros);
  EXPECT_EQ(scales, plain.at(module + ".scale").as<float>());
  EXPECT_EQ(zeros, plain.at(module + ".zero").as<uint8_t>());
  std::vector<float> rows(codes.size());
  read_rows(source, 0, shape[0], rows.data());
  const std::vector<float> expected = expected_rows(plain, module, source);
  EXPECT_EQ(rows, expected);
  // A slice from the middle, at a row that no word begins with.
  const int64_t n0 = shape[0] / 3 + 1, n1 = std::min(shape[0], n0 + 21);
  std::vector<float> slice(static_cast<size_t>((n1 - n0) * shape[1]));
  read_rows(source, n0, n1, slice.data());
  EXPECT_TRUE(std::equal(slice.begin(), slice.end(), expected.begin() + n0 * shape[1]));
}

struct Case {
  const char* folder;
  const char* layout;
};

class IntFourGolden : public testing::TestWithParam<Case> {};

TEST_P(IntFourGolden, HoldsThePlainCodes) {
  const fs::path folder = golden(GetParam().folder);
  if (folder.empty()) GTEST_SKIP() << GetParam().folder << " is neither in tests/data nor in OMNI_GOLDENS";
  const auto plain = omni_files::SafetensorsFile::open(folder / "plain_codes.safetensors");
  const fs::path directory = folder / GetParam().layout;
  const Checkpoint checkpoint = Checkpoint::open(directory);
  const auto quant = read_quant_config(read_json_object(directory / "config.json"), "config.json");
  int modules = 0;
  for (const auto& [name, tensor] : plain.tensors()) {
    if (!name.ends_with(".codes")) continue;
    SCOPED_TRACE(name);
    check_module(checkpoint, quant, plain, name.substr(0, name.size() - 6));
    ++modules;
  }
  EXPECT_GE(modules, 20);
}

// Act-order has codes of its own: nearest ones of the dense model, its inputs sorted by group.
TEST(IntFourGoldenActOrder, IsTheDenseModelRoundedInItsGroups) {
  const fs::path dense_path = golden("a"), int4_path = golden("a_int4") / "gptq_actorder";
  if (dense_path.empty() || !fs::exists(int4_path)) GTEST_SKIP() << "OMNI_GOLDENS names no directory with spark/a";
  const Checkpoint dense = Checkpoint::open(dense_path), int4 = Checkpoint::open(int4_path);
  const auto quant = read_quant_config(read_json_object(int4_path / "config.json"), "config.json");
  int modules = 0;
  for (const auto& [name, view] : dense.tensors()) {
    const std::string module = name.substr(0, name.size() - std::string(".weight").size());
    if (int4.find(module + ".qweight") == nullptr) continue;
    SCOPED_TRACE(module);
    const int64_t n = view.shape()[0], k = view.shape()[1];
    const LinearSource source = find_linear(int4, quant, module, n, k);
    ASSERT_EQ(static_cast<int64_t>(source.g_idx.size()), k);
    std::vector<int64_t> order(static_cast<size_t>(k));
    std::iota(order.begin(), order.end(), 0);
    const auto group_of = [&](int64_t input) { return source.g_idx[static_cast<size_t>(input)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return group_of(a) < group_of(b); });
    std::vector<float> w(static_cast<size_t>(n * k)), sorted, scales(static_cast<size_t>(n * source.groups())), stored_scales;
    std::vector<uint8_t> codes(w.size()), stored(w.size()), zeros(scales.size()), stored_zeros, sorted_codes;
    read_rows(find_linear(dense, {}, module, n, k), 0, n, w.data());
    read_codes(source, 0, n, stored.data());
    read_scales(source, &stored_scales, &stored_zeros);
    for (int64_t row = 0; row < n; ++row) {
      for (const int64_t input : order) {
        sorted.push_back(w[static_cast<size_t>(row * k + input)]);
        sorted_codes.push_back(stored[static_cast<size_t>(row * k + input)]);
      }
    }
    quantise_rows(sorted.data(), n, k, k, source.group, false, Quantiser::kNearest, {}, {codes.data(), scales.data(), zeros.data()},
                  nullptr);
    EXPECT_EQ(codes, sorted_codes);
    EXPECT_EQ(scales, stored_scales);
    EXPECT_EQ(zeros, stored_zeros);
    ++modules;
  }
  EXPECT_EQ(modules, 20);
}

INSTANTIATE_TEST_SUITE_P(Layouts, IntFourGolden,
                         testing::Values(Case{"a_int4", "gptq"}, Case{"a_int4", "gptq_v2"}, Case{"a_int4", "compressed-tensors"},
                                         Case{"d_int4", "gptq"}, Case{"d_int4", "compressed-tensors"}),
                         [](const auto& info) {
                           std::string name = std::string(info.param.folder) + "_" + info.param.layout;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ref
