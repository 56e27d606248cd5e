// SPDX-License-Identifier: Apache-2.0
// The code predictor: codebooks 1..15 of a frame, one after the other, over a cache of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/talker.h"

namespace ref::tts {

struct PredictorOptions {
  Precision precision = Precision::kDefault;
  omni_dtype cache = OMNI_DTYPE_BF16;
  std::string max_isa = {};
  const omni_parallel* parallel = nullptr;
};

class CodePredictor {
 public:
  // Of the logits [vocabulary] of sub-step 1..15, which it may change, the code.
  using Pick = std::function<int32_t(int64_t codebook, std::span<float> logits)>;

  CodePredictor(std::shared_ptr<const ModelWeights> weights, const PredictorOptions& options);
  ~CodePredictor();
  CodePredictor(CodePredictor&&) noexcept;

  // Codes 1..15 that follow the talker's hidden row and code 0, whose embedding row of the talker is given. Throws Error naming a
  // code outside of the vocabulary. Never allocates without an observer. One sees "predictor.input" (after the projection),
  // "predictor.layer.N.*" and "predictor.hidden", at positions 0, 1 and then 2..15.
  Frame frame(std::span<const float> hidden, int32_t code0, std::span<const float> code0_row, const Pick& pick,
              Observer* observer = nullptr);

  uint64_t weight_bytes_per_frame() const;
  std::vector<std::string> describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ref::tts
