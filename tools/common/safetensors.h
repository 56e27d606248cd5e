// SPDX-License-Identifier: Apache-2.0
// A reader of safetensors files: 8 bytes of little-endian header length, a JSON header, then the data. For programs and tests.
// Users feed it files, so everything in them is checked: lengths, offsets, overflow, shapes against sizes, duplicate names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tools/common/mapped_file.h"

namespace omni_files {

// what() is one line that begins with the path.
class SafetensorsError : public FileError {
 public:
  using FileError::FileError;
};

struct Tensor {
  std::string dtype;  // "U8", "BF16", "F32", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // into the file's data, not necessarily aligned

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;  // the reader has checked that it fits
    return count;
  }
  // A copy as elements of T, which must have the size of the dtype.
  template <typename T>
  std::vector<T> as() const {
    if (static_cast<size_t>(elements()) * sizeof(T) != bytes.size())
      throw SafetensorsError("dtype " + dtype + " read as another size");
    std::vector<T> values(static_cast<size_t>(elements()));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

class SafetensorsFile {
 public:
  // The format's own limit on the header; more is no file of this kind.
  static constexpr uint64_t kMostHeaderBytes = 100'000'000;

  // Maps the file.
  static SafetensorsFile open(const std::string& path);
  // `name` begins error lines.
  SafetensorsFile(std::string name, MappedFile file);
  // The same from memory.
  SafetensorsFile(std::string name, std::vector<std::byte> bytes);

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& name() const { return name_; }

  const Tensor* find(const std::string& tensor) const;
  const Tensor& at(const std::string& tensor) const;
  // A metadata entry that is a whole number >= 0.
  int64_t metadata_number(const std::string& key) const;

 private:
  void parse(std::span<const std::byte> bytes);

  std::string name_;
  std::variant<std::vector<std::byte>, MappedFile> storage_;  // moving it keeps the bytes where they are, and with it the spans
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace omni_files
