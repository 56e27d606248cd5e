// SPDX-License-Identifier: Apache-2.0
// A golden file of one weight matrix: its metadata and tensors, each checked for type and shape before it is used.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/golden/record.h"
#include "bench/golden/safetensors.h"

namespace omnibench {

class GoldenFile {
 public:
  explicit GoldenFile(omni_golden::SafetensorsFile file) : file_(std::move(file)) {
    const auto found = file_.metadata().find("kind");
    if (found == file_.metadata().end()) fail("has no metadata \"kind\"");
    kind_ = found->second;
  }

  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] bool has(const std::string& tensor) const { return file_.find(tensor) != nullptr; }
  [[nodiscard]] std::vector<int64_t> shape(const std::string& tensor) const { return file_.at(tensor).shape; }
  [[nodiscard]] std::string text(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) fail("has no metadata \"" + key + "\"");
    return found->second;
  }

  /// Reads N, K and group of the metadata; to be called once, before those below.
  void read_shape() {
    n_ = file_.metadata_number("N");
    k_ = file_.metadata_number("K");
    const int64_t group = file_.metadata_number("group");
    if (n_ < 1 || k_ < 1 || group < 1 || n_ > kMost || k_ > kMost || group > kMost) fail("N, K or group is out of range");
    group_ = static_cast<uint32_t>(group);
  }
  [[nodiscard]] int64_t n() const { return n_; }
  [[nodiscard]] int64_t k() const { return k_; }
  [[nodiscard]] uint32_t group() const { return group_; }
  [[nodiscard]] int64_t groups() const { return (k_ + group_ - 1) / group_; }

  template <typename T>
  [[nodiscard]] std::vector<T> read(const std::string& tensor, const std::string& dtype, const std::vector<int64_t>& shape) const {
    const omni_golden::Tensor& found = file_.at(tensor);
    if (found.dtype != dtype || found.shape != shape) {
      fail(fmt::format("tensor \"{}\" is {} [{}], expected {} [{}]", tensor, found.dtype, fmt::join(found.shape, ", "), dtype,
                       fmt::join(shape, ", ")));
    }
    return found.as<T>();
  }
  /// uint8 [N][K] of 0..15.
  [[nodiscard]] std::vector<uint8_t> codes() const {
    std::vector<uint8_t> values = read<uint8_t>("codes", "U8", {n_, k_});
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] > 15) fail(fmt::format("codes[{}][{}] is {}", i / k_, i % k_, values[i]));
    }
    return values;
  }
  /// bf16 [M][K] with M of the tensor, 1..1024.
  [[nodiscard]] std::vector<uint16_t> activations(int64_t* rows) const {
    const std::vector<int64_t> shape = file_.at("act_bf16").shape;
    *rows = shape.empty() ? 0 : shape[0];
    if (*rows < 1 || *rows > 1024) fail("tensor \"act_bf16\" has no rows, or more than 1024");
    return read<uint16_t>("act_bf16", "BF16", {*rows, k_});
  }

  [[noreturn]] void fail(const std::string& what) const { throw Malformed(file_.name() + ": " + what); }

 private:
  static constexpr int64_t kMost = int64_t{1} << 31;

  omni_golden::SafetensorsFile file_;
  std::string kind_;
  int64_t n_ = 0, k_ = 0;
  uint32_t group_ = 0;
};

}  // namespace omnibench
