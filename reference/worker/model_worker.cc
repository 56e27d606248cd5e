// SPDX-License-Identifier: Apache-2.0
// omni-model-worker: a packed Spark model as an arm of `omni-bench --op model` (docs/workers.md, docs/end-to-end-speed.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "reference/spark/decoder.h"
#include "reference/worker/serve.h"

namespace {

using nlohmann::json;

struct Settings {
  std::string model, memory = "mapped", norm = "fused", head_rows = "int8", kv = "bf16";
  int64_t chunk = 512;
  uint32_t threads = 0;  // 0: those of the case
};

// `m` tokens after `depth` others.
class ModelSteps final : public ref::worker::Served {
 public:
  ModelSteps(const Settings& settings, const json& question)
      : m_(question.at("m")),
        depth_(question.at("depth")),
        pool_(settings.threads > 0 ? settings.threads : question.at("threads").get<uint32_t>()) {
    if (question.at("op") != "model") throw ref::worker::Refused("serves --op model");
    const auto memory = settings.memory == "huge" ? ref::WeightsMemory::kHuge : ref::WeightsMemory::kMapped;
    const auto weights = ref::load_packed(settings.model, memory, pool_.parallel());
    ref::spark::DecoderOptions options;
    options.context = depth_ + std::max<int64_t>(m_, 1) + kDrift;
    options.chunk = settings.chunk;
    options.cache = ref::worker::cache_type(settings.kv);
    options.fused_norm = settings.norm == "fused";
    options.int8_head_rows = settings.head_rows == "int8";
    options.parallel = pool_.parallel();
    decoder_.emplace(weights, options);
    logits_.resize(static_cast<size_t>(decoder_->config().vocabulary));
    detail_ = fmt::format("{}, {} weights, {} norm, {} head rows, {} cache, chunk {}", settings.model, settings.memory,
                          settings.norm, settings.head_rows, settings.kv, settings.chunk);
    append(depth_, ref::spark::Rows::kNone);
  }

  std::string detail() const override { return detail_; }
  double bytes() const override {
    return m_ == 1 ? static_cast<double>(decoder_->weight_bytes_per_token() + decoder_->cache_bytes_at(depth_)) : 0.0;
  }

  // Decoding goes on for some hundred tokens before it begins again at `depth`.
  double run(int64_t calls) override {
    make_room(1);
    append(1, ref::spark::Rows::kLast);  // untimed: wakes the threads
    std::chrono::nanoseconds spent{0};
    for (int64_t i = 0; i < calls; ++i) {
      make_room(m_);
      const auto from = std::chrono::steady_clock::now();
      append(m_, ref::spark::Rows::kLast);
      spent += std::chrono::steady_clock::now() - from;
    }
    return static_cast<double>(spent.count());
  }

 private:
  static constexpr int64_t kDrift = 512;

  void append(int64_t count, ref::spark::Rows rows) {
    ids_.clear();
    const int64_t vocabulary = decoder_->config().vocabulary;
    for (int64_t i = 0; i < count; ++i) {
      ids_.push_back(static_cast<int32_t>((7919 * (decoder_->position() + i) + 13) % vocabulary));
    }
    decoder_->forward(ids_, rows, rows == ref::spark::Rows::kLast ? std::span<float>(logits_) : std::span<float>());
  }

  void make_room(int64_t count) {
    if (m_ > 1 || decoder_->position() + count > depth_ + kDrift) rewind();
  }

  // A window may have dropped what `depth` needs: then the sequence is made again.
  void rewind() {
    try {
      decoder_->rewind(depth_);
    } catch (const ref::Error&) {
      decoder_->reset();
      append(depth_, ref::spark::Rows::kNone);
    }
  }

  int64_t m_, depth_;
  ref::worker::Pool pool_;
  std::optional<ref::spark::Decoder> decoder_;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
  std::string detail_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"omni-model-worker: a packed model as an arm of omni-bench --op model"};
  Settings settings;
  app.add_option("MODEL", settings.model, "a packed directory")->required();
  app.add_option("--weights-memory", settings.memory)->check(CLI::IsMember({"mapped", "huge"}));
  app.add_option("--norm", settings.norm)->check(CLI::IsMember({"fused", "separate"}));
  app.add_option("--head-rows", settings.head_rows)->check(CLI::IsMember({"int8", "bf16"}));
  app.add_option("--kv", settings.kv)->check(CLI::IsMember({"bf16", "f32", "int8"}));
  app.add_option("--chunk", settings.chunk)->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", settings.threads, "instead of those of the case")->check(CLI::Range(1, 256));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  ref::worker::serve(std::cin, std::cout, [&](const json& question) { return std::make_unique<ModelSteps>(settings, question); });
  return 0;
}
