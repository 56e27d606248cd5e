// SPDX-License-Identifier: Apache-2.0
// Packing into memory: what each kind of source becomes, to the bit.
#include "reference/pack/packer.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/pack/plan.h"
#include "reference/pack/quantiser.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

constexpr const char* kOut = "model.layers.0.self_attn.out_proj";
constexpr const char* kGateUp = "model.layers.1.mlp.gate_up_proj";

std::shared_ptr<const ModelWeights> pack(const std::filesystem::path& directory, const PackOptions& options,
                                         PackResult* result = nullptr) {
  return pack_in_memory(Checkpoint::open(directory), options, result, {}, nullptr);
}

std::vector<float> source_values(const Checkpoint& checkpoint, const std::string& tensor) {
  const TensorView& view = checkpoint.at(tensor);
  return widen(Plain{plain_type(view), view.shape(), view.bytes()});
}

TEST(Packer, KeepsBf16ExactlyAndSharesTheTiedTable) {
  const TemporaryDirectory directory;
  TinySpark{}.write(directory / "m");
  const auto weights = pack(directory / "m", {.weights = WeightType::kKeep, .head = HeadType::kKeep});
  const Checkpoint checkpoint = Checkpoint::open(directory / "m");
  const Matrix& out = weights->matrix(kOut, 64, 64);
  EXPECT_EQ(out.layout.format, OMNI_FORMAT_W16);
  EXPECT_NE(out.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  EXPECT_EQ(unpack_matrix(out), source_values(checkpoint, std::string(kOut) + ".weight"));
  std::vector<float> stacked = source_values(checkpoint, "model.layers.1.mlp.gate_proj.weight");
  const std::vector<float> up = source_values(checkpoint, "model.layers.1.mlp.up_proj.weight");
  stacked.insert(stacked.end(), up.begin(), up.end());
  EXPECT_EQ(unpack_matrix(weights->matrix(kGateUp, 192, 64)), stacked);
  EXPECT_EQ(unpack_matrix(weights->matrix("lm_head", 80, 64)), source_values(checkpoint, "model.embedding.weight"));
  EXPECT_EQ(weights->find_plain("model.embedding.weight"), nullptr);
  EXPECT_EQ(weights->plain("model.layers.0.self_attn.g_proj.weight", {4, 64}).type, OMNI_DTYPE_BF16);
}

}  // namespace
}  // namespace ref
