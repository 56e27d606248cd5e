// SPDX-License-Identifier: Apache-2.0
// quantization_config of a config.json: how the int4 modules of a checkpoint are to be read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ref {

// How the codes of one module came to be.
struct QuantScheme {
  int64_t bits = 4;
  int64_t group = 0;  // inputs of one scale; 0: the whole row
  bool symmetric = false;
  bool act_order = false;
};

struct QuantConfig {
  enum class Method : uint8_t { kGptq, kAwq, kCompressedTensors };
  // A scheme for some modules: of a config group of compressed-tensors, or an override of GPTQ's `dynamic`.
  struct Rule {
    enum class Match : uint8_t { kName, kPattern, kClass };  // in the order of precedence
    Match match;
    std::string text;
    QuantScheme scheme;
  };

  std::string name;  // of the config, for error lines
  Method method;
  bool gptq_v2 = false;  // zeros are stored as they are, not minus one
  QuantScheme base;      // of modules without a rule; compressed-tensors has none of these
  std::vector<Rule> rules = {};

  // Throws Error naming the module: no rule or two of them, another bit width, a regular expression that does not end.
  // Which modules are quantised at all, the checkpoint's tensors tell; lists of exclusions are not needed for that.
  QuantScheme scheme(const std::string& module) const;
};

// nullopt when the config has none. Throws Error naming `name`, the key and its value: another method, bit width, group size,
// format.
std::optional<QuantConfig> read_quant_config(const nlohmann::json& config, const std::string& name);

}  // namespace ref
