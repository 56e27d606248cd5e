// SPDX-License-Identifier: Apache-2.0
#include "reference/io/quant_config.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"

namespace ref {
namespace {

using nlohmann::json;

constexpr size_t kMostRules = 4096, kMostPatternBytes = 4096;
// Of ICU's matching steps, about a millisecond each: patterns come from the file and may backtrack without end.
constexpr int32_t kMostMatchSteps = 200;

// One object of the config; `where` begins error lines.
struct Section {
  const json& object;
  std::string where;

  [[noreturn]] void fail(const std::string& what) const { throw Error(where + ": " + what); }
  // nullptr when absent or null.
  const json* find(const char* key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void fail_value(const char* key, const std::string& expected) const {
    std::string value = object.at(key).dump(-1, ' ', false, json::error_handler_t::replace);
    if (value.size() > 80) value = value.substr(0, 77) + "...";
    fail(std::string(key) + " is " + value + ", expected " + expected);
  }
  int64_t integer(const char* key, int64_t otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX)) {
      fail_value(key, "a whole number");
    }
    return value->get<int64_t>();
  }
  bool boolean(const char* key, bool otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail_value(key, "true or false");
    return value->get<bool>();
  }
  std::string text(const char* key, const std::string& otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) fail_value(key, "a string");
    return value->get<std::string>();
  }
  // Of text(), lower case and one of `allowed`, else an error.
  std::string word(const char* key, const std::string& otherwise, const std::vector<std::string>& allowed) const {
    std::string value = text(key, otherwise), list;
    for (char& letter : value) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    for (const std::string& one : allowed) {
      if (value == one) return value;
      list += (list.empty() ? "\"" : " or \"") + one + "\"";
    }
    if (find(key) == nullptr) fail("has no " + std::string(key));
    fail_value(key, list);
  }
  Section child(const char* key) const {
    if (!object.at(key).is_object()) fail_value(key, "an object");
    return {object.at(key), where + ": " + key};
  }
  void expect_absent(const char* key) const {
    const json* value = find(key);
    if (value != nullptr && !value->empty()) fail_value(key, "none: weights of this kind are not read");
  }
};

int64_t read_group(const Section& section, const char* key, int64_t otherwise) {
  const int64_t group = section.integer(key, otherwise);
  if (group == -1) return 0;
  if (group < 1 || group > INT32_MAX) section.fail_value(key, "-1 or a positive number");
  return group;
}

void expect_four_bits(const Section& section, const char* key) {
  if (section.find(key) == nullptr) section.fail("has no " + std::string(key));
  if (section.integer(key, 0) != 4) section.fail_value(key, "4");
}

void check_pattern(const Section& section, const std::string& pattern) {
  if (pattern.size() > kMostPatternBytes) {
    section.fail("has a pattern of " + std::to_string(pattern.size()) + " bytes, more than " + std::to_string(kMostPatternBytes));
  }
}

QuantScheme gptq_scheme(const Section& section, const QuantScheme& otherwise) {
  QuantScheme scheme;
  scheme.bits = section.integer("bits", otherwise.bits);
  scheme.group = section.find("group_size") == nullptr ? otherwise.group : read_group(section, "group_size", -1);
  scheme.symmetric = section.boolean("sym", otherwise.symmetric);
  scheme.act_order = section.boolean("desc_act", otherwise.act_order);
  return scheme;
}

// Keys are regular expressions: "-:" excludes modules, "+:" or nothing overrides their scheme.
void read_dynamic(const Section& section, QuantConfig* config) {
  if (section.find("dynamic") == nullptr) return;
  const Section dynamic = section.child("dynamic");
  if (dynamic.object.size() > kMostRules) dynamic.fail("has " + std::to_string(dynamic.object.size()) + " entries");
  for (const auto& [key, value] : dynamic.object.items()) {
    check_pattern(dynamic, key);
    if (key.starts_with("-:")) continue;
    if (!value.is_object()) dynamic.fail_value(key.c_str(), "an object");
    const Section section_of_rule{value, dynamic.where + ": " + key};
    config->rules.push_back({QuantConfig::Rule::Match::kPattern, key.starts_with("+:") ? key.substr(2) : key,
                             gptq_scheme(section_of_rule, config->base)});
  }
}

void read_gptq(const Section& section, QuantConfig* config) {
  config->method = QuantConfig::Method::kGptq;
  expect_four_bits(section, "bits");
  if (section.find("group_size") == nullptr) section.fail("has no group_size");
  const std::string format = section.word("checkpoint_format", "gptq", {"gptq", "gptq_v2"});
  // Newer files call it `format`; where both are there they must agree.
  if (section.word("format", format, {"gptq", "gptq_v2"}) != format && section.find("checkpoint_format") != nullptr) {
    section.fail_value("format", "the same as checkpoint_format");
  }
  config->gptq_v2 = section.word("format", format, {"gptq", "gptq_v2"}) == "gptq_v2";
  section.word("pack_dtype", "int32", {"int32"});
  if (section.boolean("is_marlin_format", false)) section.fail_value("is_marlin_format", "false");
  QuantScheme defaults;
  defaults.symmetric = true;
  config->base = gptq_scheme(section, defaults);
  read_dynamic(section, config);
}

void read_awq(const Section& section, QuantConfig* config) {
  config->method = QuantConfig::Method::kAwq;
  const bool old = section.find("bits") == nullptr && section.find("w_bit") != nullptr;
  expect_four_bits(section, old ? "w_bit" : "bits");
  const char* group = old ? "q_group_size" : "group_size";
  if (section.find(group) == nullptr) section.fail("has no " + std::string(group));
  config->base.group = read_group(section, group, -1);
  section.word("version", "gemm", {"gemm"});
  config->base.symmetric = !section.boolean("zero_point", true);
}

// Which inputs share a scale. Dynamic, "group": a permutation is stored with the module; "static" and "weight": it is not.
bool read_actorder(const Section& weights) {
  const json* value = weights.find("actorder");
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  const std::string order = weights.word("actorder", "", {"group", "weight", "dynamic", "static"});
  return order == "group" || order == "dynamic";
}

QuantScheme read_weights_of_group(const Section& group) {
  if (group.find("weights") == nullptr) group.fail("has no weights");
  const Section weights = group.child("weights");
  expect_four_bits(weights, "num_bits");
  weights.word("type", "int", {"int"});
  if (weights.boolean("dynamic", false)) weights.fail_value("dynamic", "false");
  QuantScheme scheme;
  scheme.symmetric = weights.boolean("symmetric", true);
  scheme.act_order = read_actorder(weights);
  const bool grouped = weights.find("group_size") != nullptr && weights.integer("group_size", -1) != -1;
  if (weights.word("strategy", grouped ? "group" : "channel", {"group", "channel"}) == "group") {
    if (weights.find("group_size") == nullptr) weights.fail("has no group_size");
    scheme.group = read_group(weights, "group_size", -1);
  }
  return scheme;
}

void read_config_group(const Section& group, QuantConfig* config) {
  const QuantScheme scheme = read_weights_of_group(group);
  group.word("format", "pack-quantized", {"pack-quantized"});
  const json* targets = group.find("targets");
  if (targets == nullptr || !targets->is_array() || targets->size() > kMostRules) group.fail("has no list of targets");
  for (const json& target : *targets) {
    if (!target.is_string()) group.fail("has a target that is no string");
    const auto text = target.get<std::string>();
    check_pattern(group, text);
    if (text.starts_with("re:")) {
      config->rules.push_back({QuantConfig::Rule::Match::kPattern, text.substr(3), scheme});
    } else {
      config->rules.push_back(
          {text == "Linear" ? QuantConfig::Rule::Match::kClass : QuantConfig::Rule::Match::kName, text, scheme});
    }
  }
}

void read_compressed_tensors(const Section& section, QuantConfig* config) {
  config->method = QuantConfig::Method::kCompressedTensors;
  section.word("format", "", {"pack-quantized"});
  section.expect_absent("transform_config");
  if (section.find("sparsity_config") != nullptr) section.child("sparsity_config").word("format", "dense", {"dense"});
  if (section.find("config_groups") == nullptr) section.fail("has no config_groups");
  const Section groups = section.child("config_groups");
  if (groups.object.empty() || groups.object.size() > kMostRules)
    groups.fail("has " + std::to_string(groups.object.size()) + " groups");
  for (const auto& [key, value] : groups.object.items()) {
    if (!value.is_object()) groups.fail(key + " is no object");
    read_config_group({value, groups.where + ": " + key}, config);
  }
}

// As Python's re.match: from the start, but not to the end.
bool matches_start(const QuantConfig& config, const std::string& pattern, const std::string& module) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::UnicodeString text = icu::UnicodeString::fromUTF8(module);
  icu::RegexMatcher matcher(icu::UnicodeString::fromUTF8(pattern), 0, code);
  if (U_SUCCESS(code)) {
    matcher.reset(text);
    matcher.setTimeLimit(kMostMatchSteps, code);
    const bool matched = matcher.lookingAt(code) != 0;
    if (U_SUCCESS(code)) return matched;
  }
  throw Error(config.name + ": quantization_config: pattern \"" + pattern + "\" on module \"" + module +
              "\": " + u_errorName(code));
}

bool applies(const QuantConfig& config, const QuantConfig::Rule& rule, const std::string& module) {
  switch (rule.match) {
    case QuantConfig::Rule::Match::kName:
      return rule.text == module;
    case QuantConfig::Rule::Match::kPattern:
      return matches_start(config, rule.text, module);
    case QuantConfig::Rule::Match::kClass:
      return true;
  }
  return false;
}

bool same(const QuantScheme& a, const QuantScheme& b) {
  return a.bits == b.bits && a.group == b.group && a.symmetric == b.symmetric && a.act_order == b.act_order;
}

}  // namespace

QuantScheme QuantConfig::scheme(const std::string& module) const {
  const Rule* best = nullptr;
  for (const Rule& rule : rules) {
    if (best != nullptr && rule.match > best->match) continue;
    if (!applies(*this, rule, module)) continue;
    if (best != nullptr && best->match == rule.match && !same(best->scheme, rule.scheme)) {
      throw Error(name + ": quantization_config: module \"" + module + "\" is meant by \"" + best->text + "\" and \"" + rule.text +
                  "\", which differ");
    }
    best = &rule;
  }
  if (best == nullptr && method == Method::kCompressedTensors) {
    throw Error(name + ": quantization_config: no config group targets module \"" + module + "\"");
  }
  const QuantScheme found = best == nullptr ? base : best->scheme;
  if (found.bits != 4) {
    throw Error(name + ": quantization_config: module \"" + module + "\" has " + std::to_string(found.bits) + " bits, expected 4");
  }
  return found;
}

std::optional<QuantConfig> read_quant_config(const json& config, const std::string& name) {
  const auto found = config.find("quantization_config");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_object()) throw Error(name + ": quantization_config is no object");
  const Section section{*found, name + ": quantization_config"};
  QuantConfig result;
  result.name = name;
  const std::string method = section.word("quant_method", "", {"gptq", "awq", "compressed-tensors"});
  if (method == "gptq") read_gptq(section, &result);
  if (method == "awq") read_awq(section, &result);
  if (method == "compressed-tensors") read_compressed_tensors(section, &result);
  return result;
}

}  // namespace ref
