// SPDX-License-Identifier: Apache-2.0
// Reads golden tensors of a safetensors file: eight bytes of header length, a JSON header, the data.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace okl::test {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    uint64_t length = 0;
    if (bytes.size() < sizeof length) throw std::runtime_error("cannot read " + path);
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > bytes.size() - sizeof length) throw std::runtime_error(path + " is cut short");
    header_ = nlohmann::json::parse(bytes.begin() + sizeof length, bytes.begin() + static_cast<int64_t>(sizeof length + length));
    data_.assign(bytes.begin() + static_cast<int64_t>(sizeof length + length), bytes.end());
  }

  std::vector<int64_t> shape(const std::string& name) const { return header_.at(name).at("shape").get<std::vector<int64_t>>(); }
  template <typename T>
  std::vector<T> tensor(const std::string& name) const {
    const auto offsets = header_.at(name).at("data_offsets").get<std::vector<size_t>>();
    if (offsets.at(1) > data_.size() || (offsets.at(1) - offsets.at(0)) % sizeof(T) != 0) throw std::runtime_error(name);
    std::vector<T> values((offsets.at(1) - offsets.at(0)) / sizeof(T));
    std::memcpy(values.data(), data_.data() + offsets.at(0), offsets.at(1) - offsets.at(0));
    return values;
  }

 private:
  nlohmann::json header_;
  std::vector<char> data_;
};

// The file of tests/data, else of the folder that OMNI_GOLDENS names, else "".
inline std::string golden_path(const std::string& folder, const std::string& name) {
  std::vector<std::string> candidates = {std::string(OMNI_TEST_DATA) + "/" + folder + "/" + name};
  if (const char* goldens = std::getenv("OMNI_GOLDENS")) {
    candidates.push_back(std::string(goldens) + "/" + name);
    candidates.push_back(std::string(goldens) + "/" + folder + "/" + name);
  }
  for (const std::string& path : candidates) {
    if (std::ifstream(path).good()) return path;
  }
  return "";
}

}  // namespace okl::test
