// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/generation_config.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"

namespace ref {
namespace {

using nlohmann::json;

class Reader {
 public:
  Reader(const json& root, const std::string& name) : root_(root), name_(name) {}

  // nullptr when the key is absent or null.
  const json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const char* key, const char* wanted) const {
    throw Error(name_ + ": " + key + " is " + root_.at(key).dump(-1, ' ', true, json::error_handler_t::replace) + ", not " +
                wanted);
  }
  void number(const char* key, double* value) const {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) refuse(key, "a number");
    *value = found->get<double>();
  }
  bool flag(const char* key) const {
    const json* found = find(key);
    if (found != nullptr && !found->is_boolean()) refuse(key, "true or false");
    return found != nullptr && found->get<bool>();
  }
  // A whole number that fits.
  int32_t whole(const char* key, const json& value) const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{kMost}) &&
                      value.get<int64_t>() >= -kMost && value.get<int64_t>() <= kMost;
    if (!fits) refuse(key, "made of whole numbers of 32 bits");
    return value.get<int32_t>();
  }

 private:
  const json& root_;
  const std::string& name_;
};

}  // namespace

GenerationConfig read_generation_config(const json& root, const std::string& name) {
  const Reader reader(root, name);
  GenerationConfig config;
  SamplingOptions& sampling = config.sampling;
  sampling.temperature = 0;
  if (reader.flag("do_sample")) {
    sampling.temperature = 1;
    reader.number("temperature", &sampling.temperature);
    reader.number("top_p", &sampling.top_p);
    reader.number("min_p", &sampling.min_p);
    if (const json* top_k = reader.find("top_k")) sampling.top_k = reader.whole("top_k", *top_k);
  }
  reader.number("repetition_penalty", &sampling.repetition_penalty);
  if (const json* eos = reader.find("eos_token_id")) {
    config.eos.emplace();
    if (eos->is_array()) {
      for (const json& id : *eos) config.eos->push_back(reader.whole("eos_token_id", id));
    } else {
      config.eos->push_back(reader.whole("eos_token_id", *eos));
    }
  }
  try {
    check_sampling(sampling, std::numeric_limits<int32_t>::max());
  } catch (const Error& error) {
    throw Error(name + ": " + error.what());
  }
  return config;
}

GenerationConfig load_generation_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return read_generation_config(json::object(), file.string());
  return read_generation_config(read_json_object(file), file.string());
}

}  // namespace ref
