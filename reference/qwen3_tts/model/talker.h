// SPDX-License-Identifier: Apache-2.0
// The talker: text in, codebook 0 and a hidden row for the code predictor out, one frame a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/prompt.h"

namespace ref::tts {

enum class Precision : uint8_t {
  kDefault,  // bf16 rows where the kernels take them, fp32 residual stream
  kFp32      // everything in fp32: for comparison with a reference
};

struct TalkerOptions {
  int64_t context = 4096;  // most positions: prompt rows and frames
  int64_t chunk = 256;     // most rows at once
  omni_dtype cache = OMNI_DTYPE_BF16;
  Precision precision = Precision::kDefault;
  uint64_t memory_limit = 0;  // for the caches; 0: what the machine has available
  std::string max_isa = {};
  const omni_parallel* parallel = nullptr;
};

class Talker {
 public:
  Talker(std::shared_ptr<const ModelWeights> weights, const TalkerOptions& options);
  ~Talker();
  Talker(Talker&&) noexcept;

  const Config& config() const;
  // Throws Error naming a language or speaker that the model does not have (and those it has), an empty text, a voice that does not
  // fit the model. An instruction is left out where the model was not trained for one: Config::takes_instruct(). Runs kernels, so
  // not beside append().
  Prompt prompt(const PromptRequest& request) const;
  void reset();
  int64_t position() const;
  int64_t context() const;  // positions at most
  // Appends rows [count][hidden]; afterwards hidden() and logits() are those of the last. The bits do not depend on how rows are
  // cut into calls. Throws Error when the context is full; then nothing was appended. An observer sees "talker.input",
  // "talker.layer.N.*" and "talker.hidden" of every row; without one the last layer is computed for the last row only.
  void append(std::span<const float> rows, Observer* observer = nullptr);
  std::span<const float> hidden() const;  // after the final norm, fp32
  std::span<const float> logits() const;  // of the codec head, fp32

  // The embedding sum of a frame (16 rows), and the row that follows the text.
  void embed(const Frame& frame, std::span<float> row) const;
  std::span<const float> codec_row(int32_t id) const;  // valid until the next call
  std::span<const float> pad_row() const;

  uint64_t weight_bytes_per_step() const;
  uint64_t cache_bytes() const;
  std::vector<std::string> describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ref::tts
