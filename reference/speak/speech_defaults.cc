// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/speech_defaults.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"

namespace ref::speak {
namespace {

class Keys {
 public:
  Keys(const nlohmann::json& root, const std::string& name) : root_(root), name_(name) {}

  void flag(const char* key, bool* value) const {
    if (const nlohmann::json* found = find(key)) {
      if (!found->is_boolean()) refuse(key, "true or false", *found);
      *value = found->get<bool>();
    }
  }
  void number(const char* key, double above, double most, double* value) const {
    if (const nlohmann::json* found = find(key)) {
      const double given = found->is_number() ? found->get<double>() : 0;
      if (!found->is_number() || !(given > above) || !(given <= most)) refuse(key, "a number in its range", *found);
      *value = given;
    }
  }
  void whole(const char* key, int64_t least, int64_t* value) const {
    if (const nlohmann::json* found = find(key)) {
      // -1 is how some tools write 0, "off".
      const int64_t given = found->is_number_integer() ? found->get<int64_t>() : -2;
      if (given < (least == 0 ? -1 : least) || given > (int64_t{1} << 30)) refuse(key, "a whole number in its range", *found);
      *value = std::max(given, least);
    }
  }

 private:
  const nlohmann::json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const char* key, const char* wanted, const nlohmann::json& value) const {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80);
    throw Error(name_ + ": \"" + key + "\" must be " + wanted + ", not " + text);
  }

  const nlohmann::json& root_;
  const std::string& name_;
};

}  // namespace

SpeechDefaults read_speech_defaults(const nlohmann::json& root, const std::string& name) {
  SpeechDefaults defaults;
  tts::SpeechSampling& sampling = defaults.sampling;
  const Keys keys(root, name);
  constexpr double kAny = 1e30;
  keys.flag("do_sample", &sampling.sample);
  keys.number("temperature", 0, kAny, &sampling.temperature);
  keys.whole("top_k", 0, &sampling.top_k);
  keys.number("top_p", 0, 1, &sampling.top_p);
  keys.number("repetition_penalty", 0, kAny, &sampling.repetition_penalty);
  keys.flag("subtalker_dosample", &sampling.predictor_sample);
  keys.number("subtalker_temperature", 0, kAny, &sampling.predictor_temperature);
  keys.whole("subtalker_top_k", 0, &sampling.predictor_top_k);
  keys.number("subtalker_top_p", 0, 1, &sampling.predictor_top_p);
  int64_t tokens = defaults.most_frames + 1;
  keys.whole("max_new_tokens", 1, &tokens);
  defaults.most_frames = tokens - 1;
  return defaults;
}

SpeechDefaults load_speech_defaults(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "generation_config.json";
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return {};
  return read_speech_defaults(read_json_object(file), file.string());
}

}  // namespace ref::speak
