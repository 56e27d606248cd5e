// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrices: rows of any range against the definition, and pages that are let go.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/io/linear_source.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_directory.h"

namespace ref {
namespace {

using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;

// W[a][b][c] is a number of its own that every type holds.
float number(int64_t a, int64_t b, int64_t c) { return static_cast<float>(a * 16 + b * 4 + c) / 4; }

class ConvolutionSource : public testing::TestWithParam<const char*> {
 protected:
  Checkpoint write(int64_t a, int64_t b, int64_t c) {
    const std::string dtype = GetParam();
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    for (int64_t i = 0; i < a * b * c; ++i) {
      const float value = number(i / c / b, i / c % b, i % c);
      wide.push_back(value);
      narrow.push_back(round_bf16(value));
    }
    SafetensorsWriter writer;
    writer.add<uint8_t>("a", "U8", {1}, {0});  // so that the next tensor is not aligned
    if (dtype == "F32") writer.add("x.weight", dtype, {a, b, c}, wide);
    if (dtype == "BF16") writer.add("x.weight", dtype, {a, b, c}, narrow);
    writer.write(directory_ / "model.safetensors");
    return Checkpoint::open(directory_.path());
  }

  TemporaryDirectory directory_;
};
INSTANTIATE_TEST_SUITE_P(Types, ConvolutionSource, testing::Values("F32", "BF16"), [](const auto& info) { return info.param; });

TEST_P(ConvolutionSource, RowsAreTapsOfChannels) {
  const Checkpoint checkpoint = write(4, 3, 3);
  const LinearSource source = find_convolution(checkpoint, "x", 4, 3, 3);
  EXPECT_EQ(source.n, 4);
  EXPECT_EQ(source.k, 9);
  for (int64_t n0 = 0; n0 < 4; ++n0) {
    for (int64_t n1 = n0; n1 <= 4; ++n1) {
      std::vector<float> rows(static_cast<size_t>((n1 - n0) * 9));
      read_rows(source, n0, n1, rows.data());
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        EXPECT_EQ(rows[i], number(n0 + at / 9, at % 9 % 3, at % 9 / 3));
      }
    }
  }
}

TEST_P(ConvolutionSource, RowsOfATransposedOneArePhases) {
  constexpr int64_t kInputs = 3, kOutputs = 2, kStride = 2, kTaps = 2;
  const Checkpoint checkpoint = write(kInputs, kOutputs, kStride * kTaps);
  const LinearSource source = find_transposed(checkpoint, "x", kOutputs, kInputs, kTaps, kStride);
  EXPECT_EQ(source.n, kStride * kOutputs);
  EXPECT_EQ(source.k, kTaps * kInputs);
  for (int64_t n0 = 0; n0 < source.n; ++n0) {
    for (int64_t n1 = n0; n1 <= source.n; ++n1) {
      std::vector<float> rows(static_cast<size_t>((n1 - n0) * source.k));
      read_rows(source, n0, n1, rows.data());
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t n = n0 + static_cast<int64_t>(i) / source.k, k = static_cast<int64_t>(i) % source.k;
        const int64_t phase = n / kOutputs, output = n % kOutputs, tap = k / kInputs, channel = k % kInputs;
        EXPECT_EQ(rows[i], number(channel, output, phase + kStride * (kTaps - 1 - tap))) << n << " " << k;
      }
    }
  }
}

TEST_P(ConvolutionSource, OneTapIsAMatrixAsItLies) {
  const Checkpoint checkpoint = write(4, 3, 1);
  EXPECT_EQ(find_convolution(checkpoint, "x", 4, 3, 1).order, RowOrder::kRows);
  EXPECT_THROW(find_convolution(checkpoint, "x", 3, 4, 1), Error);
  EXPECT_THROW(find_transposed(checkpoint, "x", 4, 3, 1, 1), Error);
  EXPECT_THROW(find_convolution(checkpoint, "y", 4, 3, 1), Error);
}

// Kilobytes of mapped files that are resident.
int64_t resident_file_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8));
  }
  return -1;
}

// A slice of its rows goes through all of a tensor, whose pages must not stay: 128 MiB that take no room on the disk.
TEST(TransposedSource, LetsGoOfItsPages) {
  const TemporaryDirectory directory;
  constexpr int64_t kInputs = 1024, kOutputs = 2048, kKernel = 16;
  std::string header =
      nlohmann::json(
          {{"x.weight",
            {{"dtype", "F32"}, {"shape", {kInputs, kOutputs, kKernel}}, {"data_offsets", {0, kInputs * kOutputs * kKernel * 4}}}}})
          .dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  const std::filesystem::path file = directory / "model.safetensors";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8) << header;
  std::filesystem::resize_file(file, 8 + length + uint64_t{kInputs} * kOutputs * kKernel * 4);
  const Checkpoint checkpoint = Checkpoint::open(directory.path());
  const LinearSource source = find_transposed(checkpoint, "x", kOutputs, kInputs, 2, kKernel / 2);
  std::vector<float> rows(static_cast<size_t>(64 * source.k), 1);
  const int64_t before = resident_file_kib();
  ASSERT_GE(before, 0);
  read_rows(source, 64, 128, rows.data());
  EXPECT_LT(resident_file_kib() - before, 16 << 10);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 0.0F), static_cast<int64_t>(rows.size()));
}

}  // namespace
}  // namespace ref
