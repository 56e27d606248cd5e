// SPDX-License-Identifier: Apache-2.0
#include "reference/core/config_reader.h"

#include <cmath>

namespace ref {
namespace {

using nlohmann::json;

// What an error line shows of a value.
constexpr size_t kMostShown = 80;

std::string range_text(int64_t least, int64_t most) {
  return least == most ? std::to_string(least) : "in " + std::to_string(least) + ".." + std::to_string(most);
}

bool whole(const json& value, int64_t least, int64_t most) {
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

}  // namespace

void ConfigReader::refuse(const char* key, const std::string& why) const {
  std::string line = name_ + ": \"" + key + "\" " + why;
  if (has(key)) line += ", not " + object_[key].dump(-1, ' ', false, json::error_handler_t::replace).substr(0, kMostShown);
  throw Error(line);
}

const ConfigReader& ConfigReader::need(const char* key) const {
  if (!has(key)) refuse(key, "is absent");
  return *this;
}

int64_t ConfigReader::size(const char* key, int64_t otherwise, int64_t least, int64_t most) const {
  if (!has(key)) return otherwise;
  if (!whole(object_[key], least, most)) refuse(key, "must be a whole number " + range_text(least, most));
  return object_[key].get<int64_t>();
}

double ConfigReader::positive(const char* key, double otherwise) const {
  if (!has(key)) return otherwise;
  const json& value = object_[key];
  if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
    refuse(key, "must be a positive number");
  }
  return value.get<double>();
}

bool ConfigReader::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  if (!object_[key].is_boolean()) refuse(key, "must be true or false");
  return object_[key].get<bool>();
}

std::string ConfigReader::word(const char* key, const char* otherwise) const {
  if (!has(key)) return otherwise;
  if (!object_[key].is_string()) refuse(key, "must be a word");
  return object_[key].get<std::string>();
}

ConfigReader ConfigReader::object(const char* key) const {
  if (!need(key).object_[key].is_object()) refuse(key, "must be an object");
  return {object_[key], name_ + ": " + key};
}

std::vector<int64_t> ConfigReader::sizes(const char* key, int64_t least, int64_t most) const {
  const json& list = need(key).object_[key];
  const std::string want = "must be a list of whole numbers " + range_text(least, most);
  if (!list.is_array() || list.empty() || list.size() > static_cast<size_t>(kMostLayers)) refuse(key, want);
  std::vector<int64_t> values;
  for (const json& value : list) {
    if (!whole(value, least, most)) refuse(key, want);
    values.push_back(value.get<int64_t>());
  }
  return values;
}

}  // namespace ref
