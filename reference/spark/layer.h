// SPDX-License-Identifier: Apache-2.0
// One layer of the decoder: its weights, its plans, and its pass over rows of the residual stream.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/linear.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/core/rope_table.h"
#include "reference/core/stream_norm.h"
#include "reference/spark/decoder.h"
#include "reference/spark/head_gate.h"
#include "reference/spark/plans.h"
#include "reference/spark/rows.h"

namespace ref::spark {

// What the layers of a model have in common.
struct LayerContext {
  const Config& config;
  const ModelWeights& weights;
  RowPolicy policy;
  bool fused_norm;  // branches leave their output to the next norm; else they add it themselves
  Backend& backend;
  LinearPlans& linear_plans;
  Plans& plans;
};

// Rows on their way through the layers.
struct LayerCall {
  const Activations& activations;
  RopeTable& rope;       // of the layer's type
  omni_kv_cache& cache;  // of the layer
  int64_t position;      // of row 0
  uint32_t rows;
  uint32_t skip;       // leading rows whose output nobody reads: they only reach the cache
  bool pending;        // activations.branch is still to be added to the stream
  Observer* observer;  // or nullptr
};

class Layer {
 public:
  Layer(const LayerContext& context, int64_t index);

  // Returns whether activations.branch is still to be added. Never allocates without an observer.
  bool run(const LayerCall& call) const;

  // Bytes that one row reads of the weights.
  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  void attend(const LayerCall& call) const;
  void feed_forward(const LayerCall& call) const;
  void append(const LayerCall& call) const;
  void see(const LayerCall& call, const char* what, uint32_t first, int64_t columns, const Rows2d& rows, int64_t column = 0) const;
  Linear linear(const LayerContext& context, const std::string& part, int64_t n, int64_t k, bool biased, omni_dtype x_type,
                const LinearOutput& output) const;

  const Config& config_;
  const Backend& backend_;
  int64_t index_;
  std::string prefix_;
  bool fused_norm_;
  omni_dtype attention_type_, gate_up_type_, product_type_;
  std::optional<StreamNorm> attention_norm_, feed_norm_;
  std::optional<Linear> qkv_, out_, down_;
  std::vector<Linear> gate_up_;  // one matrix, or gate and up
  std::optional<HeadGate> gate_;
  const omni_plan *rope_plan_, *attention_plan_, *geglu_plan_;
};

// How the rows of linear layers meet their weights under these options.
RowPolicy layer_policy(const DecoderOptions& options);

}  // namespace ref::spark
