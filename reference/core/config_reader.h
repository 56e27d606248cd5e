// SPDX-License-Identifier: Apache-2.0
// A JSON object of a model's config, read with checks: every complaint names the file, the key and what stands there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ref {

class ConfigReader {
 public:
  // Sizes beyond these are no model: products of two fit 63 bits with room.
  static constexpr int64_t kMostSize = int64_t{1} << 24;
  static constexpr int64_t kMostLayers = 1024;

  // `object` is borrowed; what is no object has no keys. `name` begins every error line.
  ConfigReader(const nlohmann::json& object, std::string name) : object_(object), name_(std::move(name)) {}

  // "NAME: "key" WHY, not VALUE".
  [[noreturn]] void refuse(const char* key, const std::string& why) const;
  // A null counts as absent.
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  // Throws Error unless the key is there.
  const ConfigReader& need(const char* key) const;

  // A whole number in least..most, `otherwise` where the key is absent.
  int64_t size(const char* key, int64_t otherwise, int64_t least, int64_t most) const;
  double positive(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string word(const char* key, const char* otherwise) const;

  // The same of keys that must be there.
  int64_t size(const char* key, int64_t least, int64_t most) const { return need(key).size(key, least, least, most); }
  std::string word(const char* key) const { return need(key).word(key, ""); }
  ConfigReader object(const char* key) const;
  // An array of whole numbers in least..most, at least one.
  std::vector<int64_t> sizes(const char* key, int64_t least, int64_t most) const;

  const nlohmann::json& object() const { return object_; }
  const std::string& name() const { return name_; }

 private:
  const nlohmann::json& object_;
  std::string name_;
};

}  // namespace ref
