// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/text_calibration.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/memory.h"
#include "reference/core/parallel.h"
#include "reference/pack/packer.h"
#include "reference/spark/layer_runner.h"
#include "reference/spark/pack_plan.h"

namespace ref::spark {
namespace {

using Moments = std::map<std::string, InputMoments>;  // by the name of the tensor that a layer shows its observer

// What is in front of each linear module of a layer.
constexpr std::array<std::pair<std::string_view, const char*>, 6> kInputs = {{{"self_attn.q_k_v_proj", "attn_norm"},
                                                                              {"self_attn.g_proj", "attn_norm"},
                                                                              {"self_attn.out_proj", "attn_gated"},
                                                                              {"mlp.gate_proj", "ffn_norm"},
                                                                              {"mlp.up_proj", "ffn_norm"},
                                                                              {"mlp.down_proj", "ffn_act"}}};
constexpr const char* kHead = "final_norm";

class MomentObserver : public Observer {
 public:
  MomentObserver(std::string prefix, Moments* moments, const omni_parallel* parallel)
      : prefix_(std::move(prefix)), moments_(moments), parallel_(parallel) {}

  bool wants(const std::string& name) const override { return find(name) != moments_->end(); }
  void tensor(const std::string& name, int64_t, int64_t rows, int64_t columns, omni_dtype type, const void* data,
              int64_t ld) override {
    const auto found = find(name);
    if (type == OMNI_DTYPE_F32) {
      found->second.add(static_cast<const float*>(data), rows, ld, parallel_);
      return;
    }
    wide_.resize(static_cast<size_t>(rows * columns));
    bits_.resize(static_cast<size_t>(columns));
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(bits_.data(), static_cast<const uint16_t*>(data) + row * ld, bits_.size() * 2);
      std::transform(bits_.begin(), bits_.end(), wide_.begin() + row * columns, widen_bf16);
    }
    found->second.add(wide_.data(), rows, columns, parallel_);
  }

 private:
  Moments::iterator find(const std::string& name) const {
    return name.starts_with(prefix_) ? moments_->find(name.substr(prefix_.size())) : moments_->end();
  }

  std::string prefix_;
  Moments* moments_;
  const omni_parallel* parallel_;
  std::vector<uint16_t> bits_;
  std::vector<float> wide_;
};

class TextCalibration : public Calibration {
 public:
  TextCalibration(const Checkpoint& checkpoint, const nlohmann::json& root, const std::vector<int32_t>& ids,
                  const CalibrationOptions& options)
      : config_(read_config(root, (checkpoint.directory() / "config.json").string())),
        options_(options),
        // An int8 head is planned only because nothing has to be read for it.
        plan_(plan_pack(checkpoint, root, {.weights = WeightType::kBf16, .head = HeadType::kW8})),
        weights_(std::make_shared<ModelWeights>()),
        norm_(norm_weight(checkpoint)) {
    weights_->name = checkpoint.directory().string();
    weights_->config = root;
    add_embedding(checkpoint);
    DecoderOptions runner;
    runner.context = runner.chunk = options.window;
    runner.parallel = options.parallel;
    runner_.emplace(weights_, runner);
    for (const std::vector<int32_t>& window : cut_windows(ids, options.window, options.most_windows)) {
      std::vector<float>& stream = streams_.emplace_back(window.size() * static_cast<size_t>(config_.hidden));
      runner_->embed(window, stream);
    }
  }

  const InputMoments& inputs(const std::string& module) override {
    const auto [layer, input] = place_of(module);
    if (layer < layer_) {
      throw Error("statistics of \"" + module + "\" were asked for after those of layer " + std::to_string(layer_));
    }
    while (layer_ < layer) advance(layer_ + 1 == layer);
    InputMoments& moments = moments_.at(input);
    if (options_.factors) moments.factorise(options_.parallel);
    return moments;
  }

 private:
  // Layer, config_.layers for the head, and the tensor in front of the module.
  std::pair<int64_t, std::string> place_of(const std::string& module) const {
    // A tied head is the embedding's module.
    if (module == "lm_head" || module == "model.embedding") return {config_.layers, kHead};
    constexpr std::string_view kPrefix = "model.layers.";
    int64_t layer = -1;
    if (module.starts_with(kPrefix)) {
      const char *begin = module.data() + kPrefix.size(), *end = module.data() + module.size();
      const auto [stop, error] = std::from_chars(begin, end, layer);
      if (error == std::errc() && stop != end && *stop == '.' && layer >= 0 && layer < config_.layers) {
        for (const auto& [part, input] : kInputs) {
          if (std::string_view(stop + 1, end) == part) return {layer, input};
        }
      }
    }
    throw Error("there are no statistics of \"" + module + "\"");
  }

  // On to the next layer; its moments are taken where `wanted`. Behind the last one is the head.
  void advance(bool wanted) {
    moments_.clear();
    ++layer_;
    if (layer_ == config_.layers) return take_head();
    if (wanted) {
      for (const auto& [part, input] : kInputs) {
        const int64_t k = part == "mlp.down_proj"        ? config_.intermediate
                          : part == "self_attn.out_proj" ? config_.attention_width()
                                                         : config_.hidden;
        moments_.try_emplace(input, k, options_.factors);
      }
    }
    load_layer();
    MomentObserver observer("layer." + std::to_string(layer_) + ".", &moments_, options_.parallel);
    for (std::vector<float>& stream : streams_) {
      tick("layer " + std::to_string(layer_));
      runner_->run(stream, wanted ? &observer : nullptr);
    }
    for (auto& [name, moments] : moments_) moments.finish();
  }

  void tick(const std::string& what) const {
    if (options_.tick) options_.tick("reading the text: " + what);
  }

  void load_layer() {
    const std::string prefix = "model.layers." + std::to_string(layer_) + ".";
    PackPlan part{.facts = plan_.facts};
    for (const MatrixPlan& matrix : plan_.matrices) {
      if (matrix.name.starts_with(prefix)) part.matrices.push_back(matrix);
    }
    for (const PlainPlan& plain : plan_.plains) {
      if (plain.name.starts_with(prefix)) part.plains.push_back(plain);
    }
    // Of two layers one is enough.
    weights_->matrices.clear();
    std::erase_if(weights_->plains, [](const auto& plain) { return plain.first.starts_with("model.layers."); });
    layer_storage_ = pack_plan_in_memory(part, weights_->name, options_.parallel);
    weights_->matrices = layer_storage_->matrices;
    weights_->plains.insert(layer_storage_->plains.begin(), layer_storage_->plains.end());
    runner_->load(layer_);
  }

  void take_head() {
    InputMoments& moments = moments_.try_emplace(kHead, config_.hidden, options_.factors).first->second;
    for (std::vector<float>& stream : streams_) {
      tick("head");
      const auto rows = static_cast<int64_t>(stream.size()) / config_.hidden;
      parallel_for(options_.parallel, rows, [&](int64_t row) { normalise(stream.data() + row * config_.hidden); });
      moments.add(stream.data(), rows, config_.hidden, options_.parallel);
    }
    moments.finish();
  }

  void normalise(float* row) const {
    double squares = 0;
    for (int64_t i = 0; i < config_.hidden; ++i) squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    const auto factor = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(config_.hidden) + config_.eps));
    for (int64_t i = 0; i < config_.hidden; ++i) row[i] = row[i] * factor * norm_[static_cast<size_t>(i)];
  }

  std::vector<float> norm_weight(const Checkpoint& checkpoint) const {
    const TensorView& view = checkpoint.at("model.norm.weight", {config_.hidden});
    return widen({plain_type(view), view.shape(), view.bytes()});
  }

  // Only rows of the text are read, so it stays in the file; one that lies askew there is copied.
  void add_embedding(const Checkpoint& checkpoint) {
    const TensorView& table = checkpoint.at("model.embedding.weight", {config_.vocabulary, config_.hidden});
    Bytes bytes = table.bytes();
    if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(float) != 0) {
      embedding_ = Memory(bytes.size());
      std::memcpy(embedding_.data(), bytes.data(), bytes.size());
      bytes = {embedding_.data(), bytes.size()};
    }
    weights_->plains["model.embedding.weight"] = {plain_type(table), table.shape(), bytes};
  }

  Config config_;
  CalibrationOptions options_;
  PackPlan plan_;
  std::shared_ptr<ModelWeights> weights_;                   // of the layer at hand
  std::shared_ptr<const ModelWeights> layer_storage_ = {};  // what they point into
  std::vector<float> norm_;
  Memory embedding_;
  std::optional<LayerRunner> runner_;
  std::vector<std::vector<float>> streams_;  // by window
  int64_t layer_ = -1;
  Moments moments_;
};

}  // namespace

std::unique_ptr<Calibration> calibrate(const Checkpoint& checkpoint, const nlohmann::json& config, const std::vector<int32_t>& ids,
                                       const CalibrationOptions& options) {
  return std::make_unique<TextCalibration>(checkpoint, config, ids, options);
}

}  // namespace ref::spark
