// SPDX-License-Identifier: Apache-2.0
// Text from a prompt, token by token, until something ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/generate/token_model.h"
#include "reference/sampling/sampler.h"
#include "reference/text/tokenizer.h"

namespace ref {

enum class StopReason : uint8_t { kEos, kStop, kMaxTokens, kContext, kInterrupted, kClosed };
// "eos", "stop", "max_tokens", "context", "interrupted", "closed".
std::string_view stop_reason_name(StopReason reason);

struct GenerateOptions {
  SamplingOptions sampling;        // its end tokens are where the text ends
  std::vector<std::string> stops;  // texts that end it; they need a tokenizer
  int64_t max_tokens = 256;        // new ones; 0: the prompt is read and nothing is drawn
  uint64_t seed = 0;
  bool show_special = false;  // the text shows special tokens
  int64_t step = 512;         // tokens of the prompt between two looks at `interrupted`
};

struct GenerateResult {
  std::string text;                  // without the stop text; "" without a tokenizer
  std::vector<int32_t> ids;          // the new tokens, without the end token
  std::optional<int32_t> end_token;  // the one that was drawn, with kEos
  StopReason reason = StopReason::kMaxTokens;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  // reading the prompt, to the first logits
  double decode_seconds = 0;   // all that follows, in which `decode_steps` tokens went through the model
  int64_t decode_steps = 0;
};

struct GenerateHooks {
  std::function<bool(std::string_view)> write = nullptr;  // valid UTF-8, never empty; false: nobody reads on
  std::function<void(int32_t)> token = nullptr;           // each new token
  std::function<bool()> interrupted = nullptr;
};

// Throws Error: an empty prompt, one longer than the context (with both figures), sampling options out of range, logits that no
// token can be drawn from. `tokenizer` may be nullptr: then there is no text. The model starts from an empty sequence.
GenerateResult generate(TokenModel* model, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                        const GenerateOptions& options, const GenerateHooks& hooks);

}  // namespace ref
