// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/pack_plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/pack/source_scan.h"
#include "reference/pack/tensor_use.h"

namespace ref::spark {
namespace {

constexpr const char* kEmbedding = "model.embedding";
std::string layer_name(int64_t layer) { return "model.layers." + std::to_string(layer); }

bool serves_lookups(const omni_layout& layout) { return layout.format == OMNI_FORMAT_W16 || layout.format == OMNI_FORMAT_W32; }

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const nlohmann::json& root, const PackOptions& options)
      : checkpoint_(checkpoint),
        name_((checkpoint.directory() / "config.json").string()),
        config_(read_config(root, name_)),
        quant_(read_quant_config(root, name_)),
        options_(options) {}

  PackPlan run() {
    plan_.facts = option_facts("spark2_5", options_);
    for (int64_t layer = 0; layer < config_.layers; ++layer) add_layer(layer_name(layer));
    add_plain("model.norm.weight", {config_.hidden});
    add_head();
    plan_.facts["source"] =
        quant_ ? method_name(*quant_) : std::string(checkpoint_.at(std::string(kEmbedding) + ".weight").dtype());
    add_notes();
    return std::move(plan_);
  }

 private:
  void add_layer(const std::string& layer) {
    const int64_t hidden = config_.hidden, width = config_.attention_width();
    add_plain(layer + ".input_layernorm.weight", {hidden});
    add_plain(layer + ".post_attention_layernorm.weight", {hidden});
    const std::string attention = layer + ".self_attn.";
    add_linear(attention + "q_k_v_proj", config_.qkv_rows(), hidden, config_.attention_bias);
    if (config_.gated) add_gate(attention + "g_proj");
    add_linear(attention + "out_proj", hidden, width, config_.attention_bias);
    add_mlp(layer + ".mlp.");
    add_linear(layer + ".mlp.down_proj", hidden, config_.intermediate, config_.mlp_bias);
  }

  LinearSource find(const std::string& module, int64_t n, int64_t k) {
    use_.add_module(module);
    return find_linear(checkpoint_, quant_, module, n, k);
  }

  MatrixWish wish_of(const std::string& module) {
    MatrixWish wish = layer_wish(options_);
    if (is_kept(options_, module)) wish.type = WeightType::kKeep;
    return wish;
  }

  void add_linear(const std::string& module, int64_t n, int64_t k, bool bias) {
    add_matrix(module, {find(module, n, k)}, wish_of(module));
    if (bias) add_plain(module + ".bias", {n});
  }

  void add_matrix(const std::string& name, std::vector<LinearSource> sources, const MatrixWish& wish) {
    const bool int4 = sources.front().dense == nullptr;
    plan_.matrices.push_back(plan_matrix(name, std::move(sources), wish));
    if (int4 && plan_.matrices.back().route != Route::kImport) ++rounded_again_;
    for (const LinearSource& source : plan_.matrices.back().sources) release_pages(source);
  }

  // Both read the same input and feed the same operation, so they are one matrix where their forms allow it.
  void add_mlp(const std::string& mlp) {
    const std::string gate = mlp + "gate_proj", up = mlp + "up_proj";
    LinearSource gates = find(gate, config_.intermediate, config_.hidden);
    LinearSource ups = find(up, config_.intermediate, config_.hidden);
    if (can_stack(gates, wish_of(gate), ups, wish_of(up))) {
      add_matrix(mlp + "gate_up_proj", {std::move(gates), std::move(ups)}, wish_of(gate));
      if (config_.mlp_bias) {
        const std::vector<int64_t> shape = {config_.intermediate};
        plan_.plains.push_back(plan_plain(mlp + "gate_up_proj.bias", {use(gate + ".bias", shape), use(up + ".bias", shape)},
                                          {2 * config_.intermediate}));
      }
      return;
    }
    add_matrix(gate, {std::move(gates)}, wish_of(gate));
    add_matrix(up, {std::move(ups)}, wish_of(up));
    if (config_.mlp_bias) {
      add_plain(gate + ".bias", {config_.intermediate});
      add_plain(up + ".bias", {config_.intermediate});
    }
  }

  // One row a head: nothing to gain from four bits, and much to lose.
  void add_gate(const std::string& module) {
    LinearSource source = find(module, config_.heads, config_.hidden);
    const std::vector<int64_t> shape = {source.n, source.k};
    if (source.dense != nullptr) {
      plan_.plains.push_back(plan_plain(module + ".weight", {source.dense}, shape));
    } else {
      plan_.plains.push_back({.name = module + ".weight", .type = OMNI_DTYPE_F32, .shape = shape, .linear = {std::move(source)}});
    }
    gate_type_ = dtype_word(plan_.plains.back().type);
    if (config_.attention_bias) add_plain(module + ".bias", {config_.heads});
  }

  static const char* dtype_word(omni_dtype type) {
    return type == OMNI_DTYPE_BF16 ? "bf16" : type == OMNI_DTYPE_F16 ? "fp16" : "fp32";
  }

  void add_head() {
    const int64_t n = config_.vocabulary, k = config_.hidden;
    const std::string embedding = std::string(kEmbedding) + ".weight", module = config_.tied ? kEmbedding : "lm_head";
    if (!config_.tied && quant_ == std::nullopt && checkpoint_.find("lm_head.weight") == nullptr) {
      throw Error(checkpoint_.directory().string() +
                  ": has no tensor \"lm_head.weight\", and its config does not tie the head to " +
                  "the embedding (tie_word_embeddings)");
    }
    MatrixWish wish = head_wish(options_);
    if (is_kept(options_, "lm_head") || is_kept(options_, module)) wish.type = WeightType::kKeep;
    add_matrix("lm_head", {find(module, n, k)}, wish);
    const MatrixPlan& head = plan_.matrices.back();
    const TensorView* table = use(embedding, {n, k});
    // One table can serve both when bf16 rows may use it as it is.
    const bool shared = config_.tied && serves_lookups(head.layout) &&
                        (head.layout.format == OMNI_FORMAT_W32 || !scan_values(head.sources.front()).small);
    if (shared) return;
    PlainPlan plain = plan_plain(embedding, {table}, {n, k});
    if (plain.type == OMNI_DTYPE_F16) plain.type = OMNI_DTYPE_F32;  // lookups know no fp16
    plain.lookup = true;
    plan_.plains.push_back(std::move(plain));
  }

  const TensorView* use(const std::string& tensor, const std::vector<int64_t>& shape) {
    use_.add_tensor(tensor);
    return &checkpoint_.at(tensor, shape);
  }
  void add_plain(const std::string& tensor, const std::vector<int64_t>& shape) {
    plan_.plains.push_back(plan_plain(tensor, {use(tensor, shape)}, shape));
  }

  void add_notes() {
    use_.note_unknown(
        checkpoint_,
        [&](const std::string& tensor) {
          return tensor.ends_with("rotary_emb.inv_freq") || (config_.tied && tensor == "lm_head.weight");
        },
        options_, &plan_.notes);
    if (config_.tied && checkpoint_.find("lm_head.weight") != nullptr) {
      plan_.notes.push_back(checkpoint_.directory().string() +
                            ": lm_head.weight is redundant: the config ties the head to the embedding");
    }
    if (config_.gated && options_.weights != WeightType::kKeep && options_.weights != WeightType::kBf16) {
      plan_.notes.push_back("self_attn.g_proj stays dense (" + std::string(gate_type_) + ")");
    }
    if (rounded_again_ > 0) {
      plan_.notes.push_back(std::to_string(rounded_again_) + " int4 matrices of the source were dequantised and rounded again");
    }
    use_.note_patterns(options_, {"lm_head"}, &plan_.notes);
  }

  const Checkpoint& checkpoint_;
  std::string name_;
  Config config_;
  std::optional<QuantConfig> quant_;
  const PackOptions& options_;
  PackPlan plan_;
  TensorUse use_;
  const char* gate_type_ = "bf16";
  int rounded_again_ = 0;
};

void check_linear(const ModelWeights& weights, const std::string& module, int64_t n, int64_t k, bool bias) {
  weights.matrix(module, n, k);
  if (bias) weights.plain(module + ".bias", {n});
}

}  // namespace

PackPlan plan_pack(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options) {
  return Planner(checkpoint, config, options).run();
}

PackPlan plan_synthetic(const Config& config, const PackOptions& options) {
  PackPlan plan;
  plan.facts = option_facts("spark2_5", options);
  plan.facts["source"] = "random weights";
  const MatrixWish wish = layer_wish(options);
  // A deviation of 1 / sqrt(k) keeps the size of what goes through.
  const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
    plan.matrices.push_back(plan_random(name, n, k, wish, 1 / std::sqrt(static_cast<double>(k))));
  };
  const auto plain = [&](const std::string& name, std::vector<int64_t> shape, double mean, double deviation) {
    plan.plains.push_back({.name = name, .shape = std::move(shape), .mean = mean, .deviation = deviation});
  };
  const int64_t hidden = config.hidden;
  const double deviation = 1 / std::sqrt(static_cast<double>(hidden));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = layer_name(layer);
    plain(prefix + ".input_layernorm.weight", {hidden}, 1, 0);
    plain(prefix + ".post_attention_layernorm.weight", {hidden}, 1, 0);
    linear(prefix + ".self_attn.q_k_v_proj", config.qkv_rows(), hidden);
    if (config.gated) plain(prefix + ".self_attn.g_proj.weight", {config.heads, hidden}, 0, deviation);
    linear(prefix + ".self_attn.out_proj", hidden, config.attention_width());
    linear(prefix + ".mlp.gate_up_proj", 2 * config.intermediate, hidden);
    linear(prefix + ".mlp.down_proj", hidden, config.intermediate);
  }
  plain("model.norm.weight", {hidden}, 1, 0);
  plan.matrices.push_back(plan_random("lm_head", config.vocabulary, hidden, head_wish(options), deviation));
  if (!config.tied || !serves_lookups(plan.matrices.back().layout)) {
    plain(std::string(kEmbedding) + ".weight", {config.vocabulary, hidden}, 0, deviation);
    plan.plains.back().lookup = true;
  }
  return plan;
}

void check_weights(const ModelWeights& weights) {
  const Config config = read_config(weights.config, weights.name);
  const int64_t hidden = config.hidden;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = layer_name(layer), attention = prefix + ".self_attn.", mlp = prefix + ".mlp.";
    weights.plain(prefix + ".input_layernorm.weight", {hidden});
    weights.plain(prefix + ".post_attention_layernorm.weight", {hidden});
    check_linear(weights, attention + "q_k_v_proj", config.qkv_rows(), hidden, config.attention_bias);
    if (config.gated) {
      weights.plain(attention + "g_proj.weight", {config.heads, hidden});
      if (config.attention_bias) weights.plain(attention + "g_proj.bias", {config.heads});
    }
    check_linear(weights, attention + "out_proj", hidden, config.attention_width(), config.attention_bias);
    if (weights.find_matrix(mlp + "gate_proj") != nullptr) {
      check_linear(weights, mlp + "gate_proj", config.intermediate, hidden, config.mlp_bias);
      check_linear(weights, mlp + "up_proj", config.intermediate, hidden, config.mlp_bias);
    } else {
      check_linear(weights, mlp + "gate_up_proj", 2 * config.intermediate, hidden, config.mlp_bias);
    }
    check_linear(weights, mlp + "down_proj", hidden, config.intermediate, config.mlp_bias);
  }
  weights.plain("model.norm.weight", {hidden});
  const Matrix& head = weights.matrix("lm_head", config.vocabulary, hidden);
  if (!config.tied || !serves_lookups(head.layout) || weights.find_plain(std::string(kEmbedding) + ".weight") != nullptr) {
    weights.plain(std::string(kEmbedding) + ".weight", {config.vocabulary, hidden});
  }
}

}  // namespace ref::spark
