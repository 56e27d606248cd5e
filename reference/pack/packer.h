// SPDX-License-Identifier: Apache-2.0
// Packs a checkpoint, slice by slice: into a directory (omni-pack) or into memory (a decoder given a source directory).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/model_weights.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/options.h"

namespace ref {

struct PackPlan;
struct SyntheticModel;

// What became of one tensor: for --report.
struct TensorReport {
  std::string name;
  std::string layout;  // text of the layout id, or the element type of a plain tensor
  int64_t n = 0, k = 0;
  uint64_t bytes = 0;         // as stored
  double relative_error = 0;  // sqrt(sum (w - w')^2 / sum w^2); 0 where nothing was rounded
  double seconds = 0;
};

// Called after each slice with bytes done and in all. What it throws ends the packing.
using Progress = std::function<void(const std::string& tensor, uint64_t done, uint64_t total)>;

struct PackResult {
  std::vector<TensorReport> tensors;
  std::vector<std::string> notes;  // lines a user should see: redundant or unknown tensors, gates left in bf16
};

// A decoder's weights from a source directory; peak memory beyond the result is a slice of a tensor
// (kSliceBytes).
std::shared_ptr<const ModelWeights> pack_in_memory(const Checkpoint& source, const PackOptions& options, PackResult* result,
                                                   const Progress& progress, const omni_parallel* parallel);

// Some tensors of a plan, by whoever made it: the weights of one layer.
std::shared_ptr<const ModelWeights> pack_plan_in_memory(const PackPlan& plan, const std::string& name,
                                                        const omni_parallel* parallel);

// Writes a packed directory beside `destination` and renames it when complete. `replace`: an existing packed model gives way then.
// Throws Error (OutputError where the destination is at fault); then nothing is left behind, and the destination is what it was.
PackResult pack_to_directory(const Checkpoint& source, const std::filesystem::path& destination, const PackOptions& options,
                             bool replace, const Progress& progress, const omni_parallel* parallel);
// The same of a model without sources: a packed one, or a checkpoint.
PackResult write_synthetic(const SyntheticModel& model, const std::filesystem::path& destination, const PackOptions& options,
                           bool replace, const Progress& progress, const omni_parallel* parallel);

enum class WeightsMemory : uint8_t { kMapped, kHuge };

// Whether a directory is a packed model: it has a weights.safetensors. load_packed() tells whether that is a good one.
bool is_packed(const std::filesystem::path& directory);
// Opens a packed directory. Throws Error naming file and tensor for whatever is not as the format demands.
std::shared_ptr<const ModelWeights> load_packed(const std::filesystem::path& directory, WeightsMemory memory,
                                                const omni_parallel* parallel);
// Re-reads a packed directory and compares every tensor with its SHA-256. Throws Error naming the first that differs.
void verify_packed(const std::filesystem::path& directory, const Progress& progress, const omni_parallel* parallel);

}  // namespace ref
