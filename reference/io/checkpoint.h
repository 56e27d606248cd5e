// SPDX-License-Identifier: Apache-2.0
// The weights of a model directory in Hugging Face layout: one model.safetensors, or shards with model.safetensors.index.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/common/safetensors.h"

namespace ref {

// A tensor and the file that it lies in. Bytes live as long as the Checkpoint.
struct TensorView {
  std::string name;
  const omni_files::Tensor* tensor;
  const omni_files::SafetensorsFile* file;

  const std::string& dtype() const { return tensor->dtype; }
  const std::vector<int64_t>& shape() const { return tensor->shape; }
  std::span<const std::byte> bytes() const { return tensor->bytes; }
  // "model.safetensors: tensor "x"", the beginning of an error line.
  std::string where() const;
};

class Checkpoint {
 public:
  // Maps every file. Throws Error naming the file, and the tensor, that is wrong. Nothing in an index may lead out of the
  // directory by its name; symbolic links that lie in it are followed, as in Hugging Face's cache.
  static Checkpoint open(const std::filesystem::path& directory);

  // nullptr when there is none.
  const TensorView* find(const std::string& name) const;
  // Throws Error naming the directory and the tensor when it is absent or of another shape.
  const TensorView& at(const std::string& name) const;
  const TensorView& at(const std::string& name, const std::vector<int64_t>& shape) const;

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  void add(omni_files::SafetensorsFile file);

  std::filesystem::path directory_;
  std::map<std::string, omni_files::SafetensorsFile> files_;  // by path; a map, as views point into it
  std::map<std::string, TensorView> tensors_;
};

// Reads a JSON file. Throws Error naming it when it is absent, larger than `most_bytes`, or no JSON object.
nlohmann::json read_json_object(const std::filesystem::path& file, uint64_t most_bytes = uint64_t{64} << 20);

}  // namespace ref
