// SPDX-License-Identifier: Apache-2.0
// From logits to the next token: the processors in the order of Hugging Face's generate(), then a draw that PyTorch would make.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/sampling/generator.h"

namespace ref {

struct SamplingOptions {
  double temperature = 1.0;         // 0: greedy
  int64_t top_k = 0;                // 0 or less: off; ties at the border stay
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off; drops what is less probable than min_p times the most probable
  double repetition_penalty = 1.0;  // 1: off; once for each distinct token of the history
  uint32_t min_new_tokens = 0;      // so many tokens before any of `end_tokens` may be drawn; the prompt does not count
  std::vector<int32_t> end_tokens = {};
  std::vector<int32_t> suppressed = {};  // never drawn
};

// Whether the temperature is 0, or so low that nothing but the largest logit would ever be drawn.
bool is_greedy(const SamplingOptions& options);

// Throws Error naming the option and its value: a NaN, a negative temperature, top_p or min_p outside 0..1, a penalty not above 0,
// ids outside the vocabulary.
void check_sampling(const SamplingOptions& options, int64_t vocabulary);

// Applies, in this order: repetition penalty, end tokens too early, suppressed tokens; then, unless greedy: temperature, top-k,
// top-p, min-p. What may not be drawn becomes -Inf. `history` holds the ids the penalty counts; `made` is the number of new tokens.
void process_logits(const SamplingOptions& options, std::span<const int32_t> history, uint32_t made, std::span<float> logits);

// Softmax in double, rounded once: [n] of the processed logits.
std::vector<float> probabilities(std::span<const float> logits);

// The lowest id of the largest logit. Throws Error when a logit is NaN or none is finite.
int32_t pick_greedy(std::span<const float> logits);

// torch.multinomial(p, 1): the lowest argmax of p / q, q exponential. The generator moves on by one variate per entry, but the
// logarithm is only taken where p > 0.
int32_t draw(std::span<const float> probability, Generator* generator);

// All of it. The generator is not used when greedy.
int32_t sample_token(const SamplingOptions& options, std::span<const int32_t> history, uint32_t made, std::span<float> logits,
                     Generator* generator);

}  // namespace ref
