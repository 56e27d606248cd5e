// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/synthetic_models.h"

#include <nlohmann/json.hpp>

#include "reference/io/checkpoint.h"
#include "reference/qwen3_tts/pack/synthetic.h"
#include "reference/spark/pack_plan.h"
#include "reference/spark/synthetic.h"

namespace ref {
namespace {

using nlohmann::json;

bool is_speech(const std::string& name) {
  for (const std::string& each : tts::synthetic_names()) {
    if (name == each) return true;
  }
  return false;
}

std::string text_of(const json& config) { return config.dump(2) + "\n"; }

std::map<std::string, std::string> spark_files(const json& config) {
  return {{"config.json", text_of(config)},
          {"generation_config.json", text_of({{"bos_token_id", 0}, {"eos_token_id", 1}, {"pad_token_id", 2}})},
          {"tokenizer.json", spark::synthetic_tokenizer(config["vocab_size"].get<int64_t>())}};
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names = spark::synthetic_names();
  const std::vector<std::string> speech = tts::synthetic_names();
  names.insert(names.end(), speech.begin(), speech.end());
  return names;
}

std::string synthetic_type(const std::string& name) { return is_speech(name) ? "qwen3_tts" : "spark2_5"; }

SyntheticModel synthetic_packed(const std::string& name, const PackOptions& options) {
  if (!is_speech(name)) {
    const json config = spark::synthetic_config(name);
    return {{spark::plan_synthetic(spark::read_config(config, name), options)}, spark_files(config)};
  }
  const json config = tts::synthetic_config(name);
  SyntheticModel model{{tts::plan_synthetic(config, options)}, tts::synthetic_files(config)};
  model.files["config.json"] = text_of(config);
  return model;
}

SyntheticModel synthetic_checkpoint(const std::string& name) {
  if (!is_speech(name)) {
    const json config = spark::synthetic_config(name);
    return {{spark::plan_synthetic_checkpoint(config)}, spark_files(config)};
  }
  json config = tts::synthetic_config(name);
  SyntheticModel model{tts::plan_synthetic_checkpoint(config), tts::synthetic_files(config)};
  model.files[std::string(kSpeechTokenizer) + "/config.json"] = text_of(config[kSpeechTokenizer]);
  config.erase(kSpeechTokenizer);
  model.files["config.json"] = text_of(config);
  return model;
}

}  // namespace ref
