// SPDX-License-Identifier: Apache-2.0
// The weights of a model directory in Hugging Face layout: one model.safetensors, or shards with model.safetensors.index.json. A
// part of the model in a directory of its own (the speech tokenizer of Qwen3-TTS) has its weights there in the same way, and its
// tensors are those of the one model.
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

// A part of a model and its directory.
inline constexpr const char* kSpeechTokenizer = "speech_tokenizer";

class Checkpoint {
 public:
  // Maps every file, those of parts included. Throws Error naming the file, and the tensor, that is wrong. Nothing in an index may
  // lead out of the directory by its name; symbolic links that lie in it are followed, as in Hugging Face's cache.
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
  void add_directory(const std::filesystem::path& directory);

  std::filesystem::path directory_;
  std::map<std::string, omni_files::SafetensorsFile> files_;  // by path; a map, as views point into it
  std::map<std::string, TensorView> tensors_;
};

// config.json of a model directory; that of a part stands under the part's name. Throws Error naming the file that is absent or
// wrong.
nlohmann::json read_model_config(const std::filesystem::path& directory);

// Reads a JSON file. Throws Error naming it when it is absent, larger than `most_bytes`, or no JSON object.
nlohmann::json read_json_object(const std::filesystem::path& file, uint64_t most_bytes = uint64_t{64} << 20);

}  // namespace ref
