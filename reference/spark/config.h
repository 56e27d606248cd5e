// SPDX-License-Identifier: Apache-2.0
// config.json of a Spark-X2.5 model (`model_type` spark2_5), checked.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ref::spark {

struct Rope {
  double theta;
  int64_t rot;  // leading dimensions that are rotated, even, 2..head_dim
};

struct Config {
  int64_t layers, hidden, intermediate, heads, kv_heads, head_dim, vocabulary;
  std::vector<bool> sliding;      // by layer: sliding or full attention
  std::optional<int64_t> window;  // of sliding layers, the current token counted; absent: plain causal
  Rope sliding_rope, full_rope;
  double eps;
  bool gated;      // a head gate in every attention
  bool gate_silu;  // else sigmoid
  bool attention_bias, mlp_bias;
  bool tied;  // the head is the embedding
  int64_t max_positions;
  int64_t bos;
  std::vector<int64_t> eos;
  std::optional<int64_t> pad;

  int64_t qkv_rows() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t attention_width() const { return heads * head_dim; }
  const Rope& rope(int64_t layer) const { return sliding[static_cast<size_t>(layer)] ? sliding_rope : full_rope; }
};

// Throws Error, a line that begins with `name` and tells the key and its value.
Config read_config(const nlohmann::json& root, const std::string& name);

}  // namespace ref::spark
