// SPDX-License-Identifier: Apache-2.0
// A reader of safetensors files: 8 bytes of little-endian header length, a JSON header, then the data. Header only, for programs
// and tests. Users feed it files, so everything in them is checked: lengths, offsets, overflow, shapes against sizes, duplicate
// names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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
  static SafetensorsFile open(const std::string& path) {
    try {
      return SafetensorsFile(path, MappedFile::open(path));
    } catch (const SafetensorsError&) {
      throw;
    } catch (const FileError& error) {
      throw SafetensorsError(error.what());
    }
  }

  // `name` begins error lines.
  SafetensorsFile(std::string name, MappedFile file) : name_(std::move(name)), storage_(std::move(file)) {
    parse(std::get<MappedFile>(storage_).bytes());
  }
  // The same from memory.
  SafetensorsFile(std::string name, std::vector<std::byte> bytes) : name_(std::move(name)), storage_(std::move(bytes)) {
    parse(std::get<std::vector<std::byte>>(storage_));
  }

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& name() const { return name_; }

  const Tensor* find(const std::string& tensor) const {
    const auto found = tensors_.find(tensor);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  const Tensor& at(const std::string& tensor) const {
    const Tensor* found = find(tensor);
    if (found == nullptr) fail("has no tensor \"" + tensor + "\"");
    return *found;
  }
  // A metadata entry that is a whole number >= 0.
  int64_t metadata_number(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) fail("has no metadata \"" + key + "\"");
    const std::string& text = found->second;
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) {
      fail("metadata \"" + key + "\" is no number");
    }
    return std::stoll(text);
  }

 private:
  using Json = nlohmann::json;

  [[noreturn]] void fail(const std::string& what) const { throw SafetensorsError(name_ + ": " + what); }

  // What a file that is none probably is: the four that users meet.
  static std::string_view likely_cause(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
    const size_t first = text.find_first_not_of(" \t\r\n");
    const std::string_view start = first == text.npos ? std::string_view() : text.substr(first);
    if (text.empty()) return "is empty";
    if (start.starts_with("version https://git-lfs"))
      return "is a git-lfs pointer, not the file itself: fetch it with git lfs pull";
    if (start.starts_with("<!") || start.starts_with("<html") || start.starts_with("<HTML"))
      return "is an HTML page, probably of a failed download";
    if (text.starts_with("PK\x03\x04")) return "is a zip archive (a pickled checkpoint?), not safetensors";
    if (text.starts_with("\x80\x02")) return "is a pickle, not safetensors";
    if (text.starts_with("GGUF")) return "is GGUF, not safetensors";
    return {};
  }

  void parse(std::span<const std::byte> bytes) {
    if (const std::string_view cause = likely_cause(bytes); !cause.empty()) fail(std::string(cause));
    if (bytes.size() < 8) fail("is shorter than a header length: not safetensors");
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(bytes[static_cast<size_t>(i)]);
    if (length > bytes.size() - 8)
      fail("header length " + std::to_string(length) + " exceeds the file: truncated, or not safetensors");
    if (length > kMostHeaderBytes) fail("header length " + std::to_string(length) + " exceeds the format's limit");
    const std::span<const std::byte> data = bytes.subspan(8 + static_cast<size_t>(length));

    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
    const Json header = parse_header(std::string_view(text, static_cast<size_t>(length)));
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") {
        read_metadata(value);
      } else {
        tensors_.emplace(key, read_tensor(key, value, data));
      }
    }
    check_coverage(data);
  }

  // JSON objects keep the last of two equal names; a file that has two is refused instead.
  Json parse_header(std::string_view text) const {
    std::vector<std::set<std::string>> names;
    std::string duplicate;
    const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) names.emplace_back();
      if (event == Json::parse_event_t::object_end) names.pop_back();
      if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second && duplicate.empty()) {
        duplicate = parsed.get<std::string>();
      }
      return true;
    };
    Json header;
    try {
      header = Json::parse(text, watch);
    } catch (const Json::exception&) {
      fail("header is no JSON");
    }
    if (!duplicate.empty()) fail("duplicate name \"" + duplicate + "\" in the header");
    if (!header.is_object()) fail("header is no JSON object");
    return header;
  }

  void read_metadata(const Json& value) {
    if (!value.is_object()) fail("__metadata__ is no object");
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) fail("metadata \"" + key + "\" is no string");
      metadata_.emplace(key, entry.get<std::string>());
    }
  }

  static int64_t dtype_bytes(const std::string& dtype) {
    static const std::map<std::string, int64_t> kSizes = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I16", 2}, {"U16", 2},
                                                          {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},
                                                          {"I64", 8},  {"U64", 8},  {"F64", 8}};
    const auto found = kSizes.find(dtype);
    return found == kSizes.end() ? 0 : found->second;
  }

  uint64_t unsigned_number(const std::string& tensor, const Json& value) const {
    if (!value.is_number_unsigned()) fail("tensor \"" + tensor + "\" has a number that is negative or no integer");
    return value.get<uint64_t>();
  }

  Tensor read_tensor(const std::string& key, const Json& value, std::span<const std::byte> data) const {
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string() || !value["shape"].is_array() || !value["data_offsets"].is_array() ||
        value["data_offsets"].size() != 2) {
      fail("tensor \"" + key + "\" lacks dtype, shape or data_offsets");
    }
    Tensor tensor;
    tensor.dtype = value["dtype"].get<std::string>();
    int64_t bytes = dtype_bytes(tensor.dtype);
    if (bytes == 0) fail("tensor \"" + key + "\" has unknown dtype \"" + tensor.dtype + "\"");
    for (const Json& extent : value["shape"]) {
      const uint64_t size = unsigned_number(key, extent);
      if (size > INT64_MAX || __builtin_mul_overflow(bytes, static_cast<int64_t>(size), &bytes)) {
        fail("tensor \"" + key + "\" has a shape that overflows");
      }
      tensor.shape.push_back(static_cast<int64_t>(size));
    }
    const uint64_t begin = unsigned_number(key, value["data_offsets"][0]), end = unsigned_number(key, value["data_offsets"][1]);
    if (begin > end || end > data.size()) fail("tensor \"" + key + "\" lies outside the file");
    if (end - begin != static_cast<uint64_t>(bytes)) fail("tensor \"" + key + "\" has another size than its shape");
    tensor.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    return tensor;
  }

  // Tensors must cover the data without gap or overlap, as the format demands: a truncated or forged file shows here.
  void check_coverage(std::span<const std::byte> data) const {
    std::vector<std::pair<size_t, size_t>> ranges;
    for (const auto& [key, tensor] : tensors_) {
      const auto begin = static_cast<size_t>(tensor.bytes.data() - data.data());
      if (!tensor.bytes.empty()) ranges.emplace_back(begin, begin + tensor.bytes.size());
    }
    std::sort(ranges.begin(), ranges.end());
    size_t position = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin != position) fail("tensors overlap or leave a gap");
      position = end;
    }
    if (position != data.size()) fail("data ends with bytes that belong to no tensor");
  }

  std::string name_;
  std::variant<std::vector<std::byte>, MappedFile> storage_;  // moving it keeps the bytes where they are, and with it the spans
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace omni_files
