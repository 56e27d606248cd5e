// SPDX-License-Identifier: Apache-2.0
#include "reference/sampling/sampler.h"

#include <sleef.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "reference/core/error.h"

namespace ref {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Below this a temperature leaves nothing but the largest logit: 1 / 1e-6 times any gap that fp32 can show exceeds exp's range.
constexpr double kGreedyTemperature = 1e-6;

void check_ids(const std::vector<int32_t>& ids, int64_t vocabulary, const char* what) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      throw Error(std::string(what) + " " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(vocabulary));
    }
  }
}

void keep_top_k(int64_t k, std::span<float> logits) {
  if (k <= 0 || k >= static_cast<int64_t>(logits.size())) return;
  std::vector<float> sorted(logits.begin(), logits.end());
  const auto border = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), border, sorted.end(), std::greater<>());
  for (float& logit : logits) {
    if (logit < *border) logit = kNever;
  }
}

// Ascending; a token goes while the sum up to and with it is at most 1 - p. The most probable always stays.
void keep_top_p(double p, std::span<float> logits) {
  if (p >= 1.0) return;
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] < logits[b]; });
  const std::vector<float> probability = probabilities(logits);
  double sum = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    sum += probability[order[i]];
    if (static_cast<float>(sum) > static_cast<float>(1.0 - p)) break;
    logits[order[i]] = kNever;
  }
}

void keep_min_p(double p, std::span<float> logits) {
  if (p <= 0.0) return;
  const float most = *std::ranges::max_element(logits);
  // p_i < min_p * p_max, without the softmax: the common factor cancels.
  for (float& logit : logits) {
    if (Sleef_cinz_expd1_u10purec(static_cast<double>(logit) - most) < p) logit = kNever;
  }
}

}  // namespace

bool is_greedy(const SamplingOptions& options) { return options.temperature < kGreedyTemperature; }

void check_sampling(const SamplingOptions& options, int64_t vocabulary) {
  const auto refuse = [](const char* name, double value) { throw Error(std::string(name) + " " + std::to_string(value)); };
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    refuse("temperature must be at least 0, not", options.temperature);
  if (!(options.top_p > 0 && options.top_p <= 1)) refuse("top-p must be above 0 and at most 1, not", options.top_p);
  if (!(options.min_p >= 0 && options.min_p <= 1)) refuse("min-p must be in 0..1, not", options.min_p);
  if (!(options.repetition_penalty > 0) || std::isinf(options.repetition_penalty)) {
    refuse("repetition-penalty must be above 0, not", options.repetition_penalty);
  }
  check_ids(options.end_tokens, vocabulary, "end token");
  check_ids(options.suppressed, vocabulary, "suppressed token");
}

void process_logits(const SamplingOptions& options, std::span<const int32_t> history, uint32_t made, std::span<float> logits) {
  if (options.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    std::vector<int32_t> seen(history.begin(), history.end());
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const int32_t id : seen) {
      if (id < 0 || id >= static_cast<int64_t>(logits.size())) continue;
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit < 0 ? logit * penalty : logit / penalty;
    }
  }
  if (made < options.min_new_tokens) {
    for (const int32_t id : options.end_tokens) logits[static_cast<size_t>(id)] = kNever;
  }
  for (const int32_t id : options.suppressed) logits[static_cast<size_t>(id)] = kNever;
  if (is_greedy(options)) return;
  if (options.temperature != 1.0) {
    const auto temperature = static_cast<float>(options.temperature);
    for (float& logit : logits) logit /= temperature;
  }
  keep_top_k(options.top_k, logits);
  keep_top_p(options.top_p, logits);
  keep_min_p(options.min_p, logits);
}

std::vector<float> probabilities(std::span<const float> logits) {
  const float most = *std::ranges::max_element(logits);
  std::vector<double> weights(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights[i] = logits[i] == kNever ? 0.0 : Sleef_cinz_expd1_u10purec(static_cast<double>(logits[i]) - most);
    sum += weights[i];
  }
  std::vector<float> result(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) result[i] = static_cast<float>(weights[i] / sum);
  return result;
}

int32_t pick_greedy(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw Error("logit " + std::to_string(i) + " is NaN");
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || !std::isfinite(logits[best])) throw Error("no token has a finite logit");
  return static_cast<int32_t>(best);
}

int32_t draw(std::span<const float> probability, Generator* generator) {
  size_t best = 0;
  float most = -1;
  uint64_t behind = 0;  // variates not yet left out
  for (size_t i = 0; i < probability.size(); ++i) {
    if (!(probability[i] > 0)) {
      ++behind;
      continue;
    }
    generator->skip_exponentials(behind);
    behind = 0;
    const float quotient = probability[i] / generator->exponential();
    if (quotient > most) {
      most = quotient;
      best = i;
    }
  }
  generator->skip_exponentials(behind);
  return static_cast<int32_t>(best);
}

int32_t sample_token(const SamplingOptions& options, std::span<const int32_t> history, uint32_t made, std::span<float> logits,
                     Generator* generator) {
  process_logits(options, history, made, logits);
  const int32_t greedy = pick_greedy(logits);  // also the check that a token can be drawn
  if (is_greedy(options)) return greedy;
  return draw(probabilities(logits), generator);
}

}  // namespace ref
