// SPDX-License-Identifier: Apache-2.0
// Packed directories: written, read back, verified, refused.
#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

void expect_same(const ModelWeights& a, const ModelWeights& b) {
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  ASSERT_EQ(a.plains.size(), b.plains.size());
  for (const auto& [name, matrix] : a.matrices) {
    const Matrix& other = b.matrix(name, matrix.layout.n, matrix.layout.k);
    EXPECT_TRUE(std::ranges::equal(matrix.codes, other.codes)) << name;
    EXPECT_TRUE(std::ranges::equal(matrix.scales, other.scales)) << name;
    EXPECT_TRUE(std::ranges::equal(matrix.permutation, other.permutation)) << name;
  }
  for (const auto& [name, plain] : a.plains) EXPECT_TRUE(std::ranges::equal(plain.bytes, b.plain(name, plain.shape).bytes)) << name;
}

TEST(PackedDirectory, HoldsWhatMemoryWouldHold) {
  const TemporaryDirectory directory;
  TinySpark{}.write(directory / "m");
  const Checkpoint source = Checkpoint::open(directory / "m");
  for (const WeightType type : {WeightType::kKeep, WeightType::kBf16, WeightType::kW8A8, WeightType::kW4A8, WeightType::kW4A16}) {
    const PackOptions options{.weights = type, .group = 32, .quantiser = Quantiser::kNearest};
    const auto memory = pack_in_memory(source, options, nullptr, {}, nullptr);
    pack_to_directory(source, directory / "packed", options, true, {}, nullptr);
    expect_same(*memory, *load_packed(directory / "packed", WeightsMemory::kMapped, nullptr));
    expect_same(*memory, *load_packed(directory / "packed", WeightsMemory::kHuge, nullptr));
    verify_packed(directory / "packed", {}, nullptr);
  }
}

}  // namespace
}  // namespace ref
