// SPDX-License-Identifier: Apache-2.0
// Writes small safetensors files, so that a test can make a checkpoint that is right, or wrong in one place.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/common/safetensors.h"

namespace omni_files {

class SafetensorsWriter {
 public:
  // A tensor of elements of T; `dtype` is the format's name for them ("I32"). The same name again replaces the tensor.
  template <typename T>
  SafetensorsWriter& add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                         const std::vector<T>& values) {
    std::vector<char> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors_[name] = Entry{dtype, std::move(shape), std::move(bytes)};
    return *this;
  }
  // As it is in another file.
  SafetensorsWriter& add(const std::string& name, const Tensor& tensor) {
    const auto* bytes = reinterpret_cast<const char*>(tensor.bytes.data());
    tensors_[name] = Entry{tensor.dtype, tensor.shape, std::vector<char>(bytes, bytes + tensor.bytes.size())};
    return *this;
  }
  SafetensorsWriter& remove(const std::string& name) {
    tensors_.erase(name);
    return *this;
  }
  SafetensorsWriter& metadata(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
  }

  std::vector<std::byte> bytes() const {
    nlohmann::json header = nlohmann::json::object();
    if (!metadata_.empty()) header["__metadata__"] = metadata_;
    size_t end = 0;
    for (const auto& [name, entry] : tensors_) {
      const size_t begin = end;
      end += entry.bytes.size();
      header[name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::vector<std::byte> file(8 + text.size() + end);
    const uint64_t length = text.size();
    std::memcpy(file.data(), &length, 8);
    std::memcpy(file.data() + 8, text.data(), text.size());
    std::byte* at = file.data() + 8 + text.size();
    for (const auto& [name, entry] : tensors_) {
      if (!entry.bytes.empty()) std::memcpy(at, entry.bytes.data(), entry.bytes.size());
      at += entry.bytes.size();
    }
    return file;
  }
  void write(const std::filesystem::path& path) const {
    const std::vector<std::byte> file = bytes();
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (!stream.flush()) throw std::runtime_error(path.string() + ": cannot be written");
  }

 private:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    std::vector<char> bytes;
  };

  std::map<std::string, Entry> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace omni_files
