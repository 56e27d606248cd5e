// SPDX-License-Identifier: Apache-2.0
#include "tools/common/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace omni_files {
namespace {

using Json = nlohmann::json;

// What a file that is none probably is: the four that users meet.
std::string_view likely_cause(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
  const size_t first = text.find_first_not_of(" \t\r\n");
  const std::string_view start = first == text.npos ? std::string_view() : text.substr(first);
  if (text.empty()) return "is empty";
  if (start.starts_with("version https://git-lfs")) return "is a git-lfs pointer, not the file itself: fetch it with git lfs pull";
  if (start.starts_with("<!") || start.starts_with("<html") || start.starts_with("<HTML"))
    return "is an HTML page, probably of a failed download";
  if (text.starts_with("PK\x03\x04")) return "is a zip archive (a pickled checkpoint?), not safetensors";
  if (text.starts_with("\x80\x02")) return "is a pickle, not safetensors";
  if (text.starts_with("GGUF")) return "is GGUF, not safetensors";
  return {};
}

int64_t dtype_bytes(const std::string& dtype) {
  static const std::map<std::string, int64_t> kSizes = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I16", 2}, {"U16", 2},
                                                        {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},
                                                        {"I64", 8},  {"U64", 8},  {"F64", 8}};
  const auto found = kSizes.find(dtype);
  return found == kSizes.end() ? 0 : found->second;
}

// Reads a header on behalf of a file; errors begin with its name.
class Header {
 public:
  explicit Header(const std::string& name) : name_(name) {}

  // JSON objects keep the last of two equal names; a file that has two is refused instead.
  Json read(std::string_view text) const {
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

  std::map<std::string, std::string> metadata(const Json& value) const {
    std::map<std::string, std::string> metadata;
    if (!value.is_object()) fail("__metadata__ is no object");
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) fail("metadata \"" + key + "\" is no string");
      metadata.emplace(key, entry.get<std::string>());
    }
    return metadata;
  }

  Tensor tensor(const std::string& key, const Json& value, std::span<const std::byte> data) const {
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

  [[noreturn]] void fail(const std::string& what) const { throw SafetensorsError(name_ + ": " + what); }

 private:
  uint64_t unsigned_number(const std::string& tensor, const Json& value) const {
    if (!value.is_number_unsigned()) fail("tensor \"" + tensor + "\" has a number that is negative or no integer");
    return value.get<uint64_t>();
  }

  const std::string& name_;
};

// Tensors must cover the data without gap or overlap, as the format demands: a truncated or forged file shows here.
void check_coverage(const Header& header, const std::map<std::string, Tensor>& tensors, std::span<const std::byte> data) {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (const auto& [key, tensor] : tensors) {
    const auto begin = static_cast<size_t>(tensor.bytes.data() - data.data());
    if (!tensor.bytes.empty()) ranges.emplace_back(begin, begin + tensor.bytes.size());
  }
  std::sort(ranges.begin(), ranges.end());
  size_t position = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != position) header.fail("tensors overlap or leave a gap");
    position = end;
  }
  if (position != data.size()) header.fail("data ends with bytes that belong to no tensor");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  try {
    return SafetensorsFile(path, MappedFile::open(path));
  } catch (const SafetensorsError&) {
    throw;
  } catch (const FileError& error) {
    throw SafetensorsError(error.what());
  }
}

SafetensorsFile::SafetensorsFile(std::string name, MappedFile file) : name_(std::move(name)), storage_(std::move(file)) {
  parse(std::get<MappedFile>(storage_).bytes());
}

SafetensorsFile::SafetensorsFile(std::string name, std::vector<std::byte> bytes)
    : name_(std::move(name)), storage_(std::move(bytes)) {
  parse(std::get<std::vector<std::byte>>(storage_));
}

const Tensor* SafetensorsFile::find(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? nullptr : &found->second;
}

const Tensor& SafetensorsFile::at(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  if (found == nullptr) Header(name_).fail("has no tensor \"" + tensor + "\"");
  return *found;
}

int64_t SafetensorsFile::metadata_number(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) Header(name_).fail("has no metadata \"" + key + "\"");
  const std::string& text = found->second;
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) {
    Header(name_).fail("metadata \"" + key + "\" is no number");
  }
  return std::stoll(text);
}

void SafetensorsFile::parse(std::span<const std::byte> bytes) {
  const Header header(name_);
  if (const std::string_view cause = likely_cause(bytes); !cause.empty()) header.fail(std::string(cause));
  if (bytes.size() < 8) header.fail("is shorter than a header length: not safetensors");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(bytes[static_cast<size_t>(i)]);
  if (length > bytes.size() - 8)
    header.fail("header length " + std::to_string(length) + " exceeds the file: truncated, or not safetensors");
  if (length > kMostHeaderBytes) header.fail("header length " + std::to_string(length) + " exceeds the format's limit");
  const std::span<const std::byte> data = bytes.subspan(8 + static_cast<size_t>(length));

  const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  const Json json = header.read(std::string_view(text, static_cast<size_t>(length)));
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__") {
      metadata_ = header.metadata(value);
    } else {
      tensors_.emplace(key, header.tensor(key, value, data));
    }
  }
  check_coverage(header, tensors_, data);
}

}  // namespace omni_files
