// SPDX-License-Identifier: Apache-2.0
// How well a model predicts a text, and how far one model is from another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/generate/token_model.h"

namespace ref {

// log sum exp of the logits in double. Throws Error when a logit is NaN or +Inf, or none is finite.
double log_sum_exp(std::span<const float> logits);
// Ids of the `count` largest logits, the largest first, the lower id first among equals.
std::vector<int32_t> top_ids(std::span<const float> logits, size_t count);

struct EvaluateHooks {
  std::function<void(int64_t done, int64_t total)> progress = nullptr;  // in tokens
  std::function<bool()> interrupted = nullptr;                          // true ends it: the result covers what was scored
};

struct Perplexity {
  double sum = 0;  // of -ln p
  int64_t tokens = 0;
  bool complete = true;
  double nll() const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
  double value() const;  // exp(nll)
};

// Windows of `window` ids, each from an empty sequence; the ids of a window but the first are scored. A last window of one id is
// dropped. Throws Error when nothing can be scored or a window exceeds the context.
Perplexity perplexity(TokenModel* model, std::span<const int32_t> ids, int64_t window, const EvaluateHooks& hooks);

struct Comparison {
  Perplexity a, b;
  double kl = 0;     // sum over positions of KL(a || b), in nats
  int64_t top1 = 0;  // positions with the same most probable token
  int64_t top5 = 0;  // tokens that are among the five most probable of both, of 5 a position
  int64_t positions() const { return a.tokens; }
};

// The same windows through both models, which must have the same vocabulary.
Comparison compare(TokenModel* a, TokenModel* b, std::span<const int32_t> ids, int64_t window, const EvaluateHooks& hooks);

// Tokens that greedy decoding of both models has in common from each prompt on, up to the first difference.
struct Fidelity {
  int64_t prompts = 0, tokens = 0;  // tokens: asked for in all
  int64_t agreed = 0;
  int64_t whole = 0;  // prompts without a difference
};
// `count` prompts of `prompt` ids, spread evenly over the ids, `tokens` new ones each.
Fidelity greedy_fidelity(TokenModel* a, TokenModel* b, std::span<const int32_t> ids, int64_t count, int64_t prompt, int64_t tokens,
                         const EvaluateHooks& hooks);

}  // namespace ref
