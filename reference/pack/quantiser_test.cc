// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/quantiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/io/linear_source.h"
#include "reference/pack/quantiser_case.h"

namespace ref {
namespace {

namespace fs = std::filesystem;

// Files of the reference implementation's own roundings: ragged groups, whole rows, a row of zeros, one of nothing but tiny weights
// and one of positive weights.
TEST(Nearest, EqualsTheReference) {
  const auto file = omni_files::SafetensorsFile::open(std::string(OMNI_TEST_DATA) + "/spark/nearest_excerpt.safetensors");
  int cases = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.ends_with(".codes")) continue;
    SCOPED_TRACE(name);
    const std::string stem = name.substr(0, name.size() - 6), matrix = stem.substr(0, stem.find('.'));
    const bool symmetric = stem.find(".sym") != stem.npos;
    const int64_t group = std::stoll(stem.substr(stem.find("sym") + 3));
    std::vector<float> w;
    for (const uint16_t bits : file.at(matrix + ".weight").as<uint16_t>()) w.push_back(widen_bf16(bits));
    const Quantised ours = quantise({w, tensor.shape[0], tensor.shape[1]}, group, symmetric, Quantiser::kNearest);
    EXPECT_EQ(ours.codes, tensor.as<uint8_t>());
    EXPECT_EQ(ours.scales, file.at(stem + ".scales").as<float>());
    EXPECT_EQ(ours.zeros, file.at(stem + ".zeros").as<uint8_t>());
    ++cases;
  }
  EXPECT_EQ(cases, 8);
}

// The published int4 checkpoint, bit for bit.
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
    Rows rows{std::vector<float>(static_cast<size_t>(n * k)), n, k};
    std::vector<float> scales;
    std::vector<uint8_t> codes(rows.w.size()), zeros;
    read_rows(plain, 0, n, rows.w.data());
    read_codes(source, 0, n, codes.data());
    read_scales(source, &scales, &zeros);
    const Quantised ours = quantise(rows, 64, false, Quantiser::kNearest);
    EXPECT_EQ(ours.codes, codes);
    EXPECT_EQ(ours.scales, scales);
    EXPECT_EQ(ours.zeros, zeros);
    ++modules;
  }
  EXPECT_EQ(modules, 30);
}

// Zeros of nearest rounding stay points when they are stored as numbers.
TEST(Nearest, OffsetsAreZeroPoints) {
  const Rows rows = normal_rows(5, 96, 3);
  const Quantised points = quantise(rows, 32, false, Quantiser::kNearest),
                  offsets = quantise(rows, 32, false, Quantiser::kNearest, true);
  EXPECT_EQ(offsets.codes, points.codes);
  EXPECT_EQ(offsets.scales, points.scales);
  for (size_t i = 0; i < points.zeros.size(); ++i) {
    EXPECT_EQ(offsets.offsets[i], static_cast<float>(8 - points.zeros[i]) * points.scales[i]);
  }
}

struct Form {
  const char* name;
  bool symmetric, offsets;
};
constexpr Form kForms[] = {{"symmetric", true, false}, {"points", false, false}, {"offsets", false, true}};

void expect_well_formed(const Quantised& found, const Form& form) {
  for (const uint8_t code : found.codes) EXPECT_LE(code, 15);
  for (const float scale : found.scales) {
    EXPECT_TRUE(std::isfinite(scale) && scale != 0) << scale;
    EXPECT_EQ(widen_bf16(round_bf16(scale)), scale);
  }
  for (const uint8_t zero : found.zeros) EXPECT_TRUE(form.symmetric ? zero == 8 : zero <= 15) << int{zero};
  for (const float offset : found.offsets) EXPECT_EQ(widen_bf16(round_bf16(offset)), offset);
}

// By row and group, whatever the weights are: normal, heavy tails, one sign, tiny, huge, constant, nothing.
TEST(Search, IsNeverWorseThanNearest) {
  for (const Form& form : kForms) {
    for (const int64_t group : {32, 64, 0}) {
      for (const bool weighted : {false, true}) {
        SCOPED_TRACE(std::string(form.name) + " " + std::to_string(group) + (weighted ? " weighted" : ""));
        const Rows rows = odd_rows(84);
        const std::vector<float> x = normal_rows(200, rows.k, 5, 0.3F).w;
        InputMoments inputs(rows.k, false);
        inputs.add(x.data(), 200, rows.k, nullptr);
        inputs.finish();
        const InputMoments* used = weighted ? &inputs : nullptr;
        Quantised nearest = quantise(rows, group, form.symmetric, Quantiser::kNearest, form.offsets);
        for (float& offset : nearest.offsets) offset = widen_bf16(round_bf16(offset));  // as they are stored
        const Quantised found = quantise(rows, group, form.symmetric, Quantiser::kSearch, form.offsets, used);
        expect_well_formed(found, form);
        const std::vector<double> before = group_errors(rows, nearest, group, used), after = group_errors(rows, found, group, used);
        for (size_t i = 0; i < before.size(); ++i) {
          EXPECT_LE(after[i], before[i] * 1.000001 + 1e-30) << "group " << i;
        }
      }
    }
  }
}

// On normal weights, by the factor that the search is worth.
TEST(Search, LowersTheError) {
  struct Case {
    Form form;
    int64_t group;
    double most;
  };
  for (const Case& one : {Case{kForms[0], 128, 0.88}, Case{kForms[0], 64, 0.80}, Case{kForms[1], 128, 0.90},
                          Case{kForms[1], 64, 0.96}, Case{kForms[2], 128, 0.86}, Case{kForms[2], 32, 0.90}}) {
    SCOPED_TRACE(std::string(one.form.name) + " " + std::to_string(one.group));
    const Rows rows = normal_rows(200, 512, 11);
    const double nearest = total_error(rows, quantise(rows, one.group, one.form.symmetric, Quantiser::kNearest), one.group),
                 found = total_error(rows, quantise(rows, one.group, one.form.symmetric, Quantiser::kSearch, one.form.offsets),
                                     one.group);
    EXPECT_LT(found, nearest * one.most) << found / nearest;
  }
}

// Errors move to where inputs are small.
TEST(Search, HeedsTheInputs) {
  const Rows rows = normal_rows(100, 128, 12);
  std::vector<float> x = normal_rows(500, 128, 13).w;
  for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 4 == 0 ? 4.0F : 0.25F;
  InputMoments inputs(128, false);
  inputs.add(x.data(), 500, 128, nullptr);
  inputs.finish();
  for (const Form& form : kForms) {
    const Quantised plain = quantise(rows, 64, form.symmetric, Quantiser::kSearch, form.offsets),
                    weighted = quantise(rows, 64, form.symmetric, Quantiser::kSearch, form.offsets, &inputs);
    EXPECT_LT(output_error(rows, weighted, 64, x), 0.75 * output_error(rows, plain, 64, x)) << form.name;
  }
}

TEST(Search, FindsWhatIsExact) {
  const float scale = 0.0390625F;
  Rows symmetric{{}, 1, 32}, points = symmetric, offsets = symmetric;
  for (int i = 0; i < 32; ++i) {
    const auto code = static_cast<float>((i * 7) % 16);
    symmetric.w.push_back((8 - code) * scale);  // a negative scale: +8 is there, -8 is not
    points.w.push_back((code - 11) * scale);
    offsets.w.push_back((code - 8) * scale + 0.34375F);
  }
  EXPECT_EQ(total_error(symmetric, quantise(symmetric, 32, true, Quantiser::kSearch), 32), 0);
  EXPECT_EQ(total_error(points, quantise(points, 32, false, Quantiser::kSearch), 32), 0);
  EXPECT_EQ(total_error(offsets, quantise(offsets, 32, false, Quantiser::kSearch, true), 32), 0);
}

TEST(Quantisers, RefuseWhatIsNoWeight) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 2e15F}) {
    Rows rows = normal_rows(4, 40, 1);
    rows.w[2 * 40 + 17] = bad;
    rows.w[3 * 40 + 1] = bad;
    try {
      quantise(rows, 32, true, Quantiser::kNearest);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("weight [2, 17]"), std::string::npos) << error.what();
    }
  }
  const InputMoments inputs(41, false);
  EXPECT_THROW(quantise(normal_rows(4, 40, 1), 32, true, Quantiser::kSearch, false, &inputs), Error);
}

// Neither the threads nor the order of rows nor the cut into calls shows.
TEST(Quantisers, HaveTheSameBitsForAnyThreads) {
  const Rows rows = normal_rows(37, 200, 21);
  const std::vector<float> x = normal_rows(300, 200, 22).w;
  InputMoments inputs(200, true);
  inputs.add(x.data(), 300, 200, nullptr);
  inputs.finish();
  inputs.factorise(nullptr);
  for (const Quantiser quantiser : {Quantiser::kNearest, Quantiser::kSearch, Quantiser::kGptq}) {
    const Quantised one = quantise(rows, 64, false, quantiser, false, &inputs, &kBackwards);
    for (const uint32_t threads : {1U, 3U}) {
      omni_pool* pool = nullptr;
      ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK);
      omni_parallel parallel = {sizeof(omni_parallel), 0, nullptr, nullptr};
      ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
      const Quantised two = quantise(rows, 64, false, quantiser, false, &inputs, &parallel);
      EXPECT_EQ(one.codes, two.codes);
      EXPECT_EQ(one.scales, two.scales);
      EXPECT_EQ(one.zeros, two.zeros);
      omni_pool_destroy(pool);
    }
    const Rows part{std::vector<float>(rows.w.begin() + 200 * 10, rows.w.begin() + 200 * 21), 11, 200};
    const Quantised slice = quantise(part, 64, false, quantiser, false, &inputs);
    EXPECT_TRUE(std::equal(slice.codes.begin(), slice.codes.end(), one.codes.begin() + 200 * 10));
  }
}

TEST(EightBits, AreNearestToTheScale) {
  const Rows rows = odd_rows(84);
  for (const int64_t group : {0, 32}) {
    for (const bool bf16 : {false, true}) {
      const auto groups = static_cast<size_t>(group == 0 ? 1 : 3);
      std::vector<int8_t> codes(rows.w.size());
      std::vector<float> scales(static_cast<size_t>(rows.rows) * groups);
      quantise_rows_s8(rows.w.data(), rows.rows, 84, 84, group, bf16, codes.data(), scales.data(), nullptr);
      for (size_t i = 0; i < codes.size(); ++i) {
        const size_t row = i / 84, g = group == 0 ? 0 : i % 84 / 32;
        const float scale = scales[row * groups + g], w = rows.w[i];
        float most = 0;
        for (size_t j = g * 32; j < (group == 0 ? 84 : std::min<size_t>(84, g * 32 + 32)); ++j)
          most = std::max(most, std::fabs(rows.w[row * 84 + j]));
        const float expected = bf16 ? widen_bf16(round_bf16(most / 127)) : most / 127;
        EXPECT_EQ(scale, expected > 0 ? expected : 1);
        EXPECT_EQ(codes[i], static_cast<int8_t>(std::clamp(std::nearbyint(w / scale), -127.0F, 127.0F)));
      }
    }
  }
}

// Rows that are not next to each other.
TEST(Quantisers, TakeALeadingDimension) {
  const Rows rows = normal_rows(6, 64, 31);
  Rows wide{std::vector<float>(6 * 80, 1e14F), 6, 64};
  for (int64_t r = 0; r < 6; ++r) std::copy_n(rows.w.begin() + r * 64, 64, wide.w.begin() + r * 80);
  const Quantised one = quantise(rows, 32, false, Quantiser::kSearch);
  Quantised two = one;
  std::fill(two.codes.begin(), two.codes.end(), 0);
  quantise_rows(wide.w.data(), 6, 64, 80, 32, false, Quantiser::kSearch, nullptr,
                {two.codes.data(), two.scales.data(), two.zeros.data()}, nullptr);
  EXPECT_EQ(one.codes, two.codes);
  std::vector<int8_t> narrow(6 * 64), spaced(6 * 64);
  std::vector<float> scales(6), others(6);
  quantise_rows_s8(rows.w.data(), 6, 64, 64, 0, false, narrow.data(), scales.data(), nullptr);
  quantise_rows_s8(wide.w.data(), 6, 64, 80, 0, false, spaced.data(), others.data(), nullptr);
  EXPECT_EQ(narrow, spaced);
  EXPECT_EQ(scales, others);
}

}  // namespace
}  // namespace ref
