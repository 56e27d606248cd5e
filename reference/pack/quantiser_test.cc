// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/quantiser.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "reference/io/linear_source.h"

namespace ref {
namespace {

namespace fs = std::filesystem;

struct Quantised {
  std::vector<uint8_t> codes, zeros;
  std::vector<float> scales;
};

Quantised quantise(const std::vector<float>& w, int64_t rows, int64_t k, int64_t group, bool symmetric, Quantiser quantiser,
                   std::span<const float> importance = {}, const omni_parallel* parallel = nullptr) {
  const auto groups = static_cast<size_t>(group <= 0 ? 1 : (k + group - 1) / group);
  Quantised out{std::vector<uint8_t>(w.size()), std::vector<uint8_t>(static_cast<size_t>(rows) * groups),
                std::vector<float>(static_cast<size_t>(rows) * groups)};
  quantise_rows(w.data(), rows, k, k, group, symmetric, quantiser, importance,
                {out.codes.data(), out.scales.data(), out.zeros.data()}, parallel);
  return out;
}

// Round to nearest is that of the published int4 checkpoint, bit for bit.
TEST(Nearest, EqualsTheGoldenCheckpoint) {
  const char* goldens = std::getenv("OMNI_GOLDENS");
  if (goldens == nullptr) GTEST_SKIP() << "OMNI_GOLDENS names no directory";
  const fs::path dense_path = fs::path(goldens) / "spark" / "sparklet", int4_path = dense_path / "w4a16_g64_asym_gptq";
  const Checkpoint dense = Checkpoint::open(dense_path), int4 = Checkpoint::open(int4_path);
  const auto quant = read_quant_config(read_json_object(int4_path / "config.json"), "config.json");
  int modules = 0;
  for (const auto& [name, view] : dense.tensors()) {
    const std::string module = name.substr(0, name.size() - std::string(".weight").size());
    if (int4.find(module + ".qweight") == nullptr) continue;
    SCOPED_TRACE(module);
    const int64_t n = view.shape()[0], k = view.shape()[1];
    const LinearSource source = find_linear(int4, quant, module, n, k), plain = find_linear(dense, {}, module, n, k);
    std::vector<float> w(static_cast<size_t>(n * k)), scales;
    std::vector<uint8_t> codes(w.size()), zeros;
    read_rows(plain, 0, n, w.data());
    read_codes(source, 0, n, codes.data());
    read_scales(source, &scales, &zeros);
    const Quantised ours = quantise(w, n, k, 64, false, Quantiser::kNearest);
    EXPECT_EQ(ours.codes, codes);
    EXPECT_EQ(ours.scales, scales);
    EXPECT_EQ(ours.zeros, zeros);
    ++modules;
  }
  EXPECT_EQ(modules, 30);
}

}  // namespace
}  // namespace ref
