// SPDX-License-Identifier: Apache-2.0
// The layers of talker and code predictor: one sequence, its caches, and the pass of rows through pre-norm layers with
// grouped-query attention, norms of query and key heads, rotation in half-split form, and SwiGLU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/cache/kv.h"
#include "reference/core/linear.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/core/plan_map.h"
#include "reference/core/rope_table.h"
#include "reference/core/rows.h"
#include "reference/core/stream_norm.h"
#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/head_groups.h"

namespace ref::tts {

// What the parts of a model that run on one Backend share.
struct ModelContext {
  const ModelWeights& weights;
  RowPolicy policy;
  omni_dtype cache;
  Backend& backend;
  LinearPlans& linear_plans;
  PlanMap& plans;

  // "NAME" of the checkpoint, a matrix [n][k], with NAME.bias where `biased`.
  Linear linear(const std::string& name, int64_t n, int64_t k, bool biased, omni_dtype x_type,
                const LinearOutput& output = {}) const;
  std::vector<float> vector(const std::string& name, int64_t n) const { return widen(weights.plain(name, {n})); }
};

// Buffers for `rows` rows, all in one block. Each is as wide as fp32 needs; its users say what it holds.
class StackBuffers : public StreamRows {
 public:
  StackBuffers(const StackShape& shape, int64_t rows) : memory_(layout(shape, rows, nullptr)) {
    layout(shape, rows, memory_.data());
  }

  Rows2d qkv;        // fp32
  Rows2d attention;  // heads' outputs
  Rows2d gate_up;    // where qkv and attention were, which are done with by then
  Rows2d product;    // of SwiGLU
  Rows2d output;     // of the final norm, fp32
  int32_t* positions = nullptr;

  size_t bytes() const { return memory_.size(); }

 private:
  size_t layout(const StackShape& shape, int64_t rows, std::byte* base);

  Memory memory_;
};

class StackLayer {
 public:
  // Tensors of layer `prefix` = "X.layers.3."; `label` names what an observer sees of it.
  StackLayer(const StackShape& shape, const std::string& prefix, std::string label, const HeadGroups& groups,
             const ModelContext& context);

  struct Call {
    const StackBuffers& buffers;
    const RopeTable& rope;
    KvCaches& caches;
    int64_t first_cache;  // of the layer
    int64_t position;     // of row 0
    uint32_t rows;
    uint32_t skip;  // leading rows whose output nobody reads: they only reach the cache
    bool pending;   // buffers.branch is still to be added to the stream
    Observer* observer;
  };
  // Leaves buffers.branch to be added to the stream, of the rows behind `skip`. Never allocates without an observer.
  void run(const Call& call) const;

  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  void attend(const Call& call) const;
  void feed_forward(const Call& call) const;
  void see(const Call& call, const char* what, uint32_t first, int64_t columns, const Rows2d& rows, int64_t column = 0) const;

  const StackShape& shape_;
  const Backend& backend_;
  std::string label_;
  const HeadGroups& groups_;
  omni_dtype attention_type_, product_type_;
  std::vector<float> q_norm_, k_norm_;
  std::optional<StreamNorm> attention_norm_, feed_norm_;
  std::optional<Linear> qkv_, out_, gate_up_, down_;
  const omni_plan* swiglu_plan_;
};

class Stack {
 public:
  // `prefix`: "talker.model." and the like. `context.backend.max_rows` is the most rows of a run. `observed` begins the names that
  // an observer sees: "OBSERVED.input", "OBSERVED.layer.0.qkv", ..., "OBSERVED.hidden".
  Stack(const StackShape& shape, const std::string& prefix, std::string observed, int64_t positions, const ModelContext& context);

  // Layers refer to the shape.
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void reset();
  int64_t position() const { return position_; }
  int64_t positions() const { return positions_; }  // at most
  // Where the rows of the next run() are put, fp32, [max_rows][hidden].
  float* input(int64_t row) const { return buffers_.stream.f32(row); }
  // Runs rows 0..rows of input(), which it overwrites. Of the last `wanted` rows, and of all with an observer, output() has what
  // the final norm makes. There must be room for the rows. Never allocates without an observer.
  void run(uint32_t rows, uint32_t wanted, Observer* observer);
  // Of row `row` of the last run, fp32.
  const float* output(int64_t row) const { return buffers_.output.f32(row); }

  uint64_t weight_bytes() const;
  uint64_t cache_bytes() const { return caches_.bytes(); }
  void describe(std::vector<std::string>* lines) const;

 private:
  const StackShape shape_;
  std::string observed_;
  int64_t positions_;
  const Backend& backend_;
  HeadGroups groups_;
  std::vector<StackLayer> layers_;
  StreamNorm final_norm_;
  RopeTable rope_;
  KvCaches caches_;
  StackBuffers buffers_;
  int64_t position_ = 0;
};

// A stack's attention, as the budget of caches takes it: each group of heads is one layer of it.
CacheModel cache_model(const StackShape& shape, int64_t groups);

}  // namespace ref::tts
