// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/core/error.h"
#include "reference/sampling/sampler.h"

namespace ref {
namespace {

constexpr int64_t kTop = 5;
// Logits of one piece of a window: 8 Mi values are 32 MiB, 64 rows of a vocabulary of 131072.
constexpr int64_t kPieceLogits = int64_t{8} << 20;

bool stop(const EvaluateHooks& hooks) { return hooks.interrupted && hooks.interrupted(); }

int64_t rows_of_piece(const TokenModel& model) {
  return std::max<int64_t>(kPieceLogits / std::max<int64_t>(model.vocabulary(), 1), 1);
}

void check_windows(const TokenModel& model, std::span<const int32_t> ids, int64_t window) {
  if (window < 2) throw Error("a window of " + std::to_string(window) + " scores nothing: it needs two tokens");
  if (window > model.context()) {
    throw Error("a window of " + std::to_string(window) + " tokens is more than the context of " + std::to_string(model.context()));
  }
  if (ids.size() < 2) throw Error("a text of " + std::to_string(ids.size()) + " tokens scores nothing: it needs two");
}

// Feeds all windows to `feed`, which takes the first `rows` ids of `piece` and scores row i against piece[i + 1]. False when
// interrupted.
template <typename Begin, typename Feed>
bool each_piece(std::span<const int32_t> ids, int64_t window, int64_t rows, const EvaluateHooks& hooks, const Begin& begin,
                const Feed& feed) {
  const auto total = static_cast<int64_t>(ids.size());
  for (int64_t start = 0; start < total; start += window) {
    const int64_t end = std::min(start + window, total);
    if (end - start < 2) break;
    begin();
    for (int64_t at = start; at + 1 < end; at += rows) {
      if (stop(hooks)) return false;
      const int64_t count = std::min(rows, end - 1 - at);
      feed(ids.subspan(static_cast<size_t>(at), static_cast<size_t>(count) + 1), count);
      if (hooks.progress) hooks.progress(at + count, total);
    }
  }
  return true;
}

double score(std::span<const float> logits, int32_t id) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

double divergence(std::span<const float> a, std::span<const float> b) {
  const double all_a = log_sum_exp(a), all_b = log_sum_exp(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double log_a = static_cast<double>(a[i]) - all_a, log_b = static_cast<double>(b[i]) - all_b;
    const double p = std::exp(log_a);
    if (p > 0) sum += p * (log_a - log_b);
  }
  return sum;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double most = static_cast<double>(logits[static_cast<size_t>(pick_greedy(logits))]);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

std::vector<int32_t> top_ids(std::span<const float> logits, size_t count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  count = std::min(count, ids.size());
  std::ranges::partial_sort(ids, ids.begin() + static_cast<ptrdiff_t>(count), [&](int32_t a, int32_t b) {
    const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
    return la > lb || (la == lb && a < b);
  });
  ids.resize(count);
  return ids;
}

double Perplexity::value() const { return std::exp(nll()); }

Perplexity perplexity(TokenModel* model, std::span<const int32_t> ids, int64_t window, const EvaluateHooks& hooks) {
  check_windows(*model, ids, window);
  Perplexity result;
  const int64_t rows = std::min(rows_of_piece(*model), window), vocabulary = model->vocabulary();
  std::vector<float> logits(static_cast<size_t>(rows * vocabulary));
  const auto feed = [&](std::span<const int32_t> piece, int64_t count) {
    const std::span<float> part = std::span(logits).first(static_cast<size_t>(count * vocabulary));
    model->append_all(piece.first(static_cast<size_t>(count)), part);
    for (int64_t i = 0; i < count; ++i) {
      const auto row = part.subspan(static_cast<size_t>(i * vocabulary), static_cast<size_t>(vocabulary));
      result.sum += score(row, piece[static_cast<size_t>(i) + 1]);
    }
    result.tokens += count;
  };
  result.complete = each_piece(
      ids, window, rows, hooks, [&] { model->reset(); }, feed);
  return result;
}

Comparison compare(TokenModel* a, TokenModel* b, std::span<const int32_t> ids, int64_t window, const EvaluateHooks& hooks) {
  if (a->vocabulary() != b->vocabulary()) {
    throw Error("the models have vocabularies of " + std::to_string(a->vocabulary()) + " and " + std::to_string(b->vocabulary()) +
                ", which cannot be compared");
  }
  check_windows(*a, ids, window);
  check_windows(*b, ids, window);
  Comparison result;
  const int64_t rows = std::min(rows_of_piece(*a), window), vocabulary = a->vocabulary();
  std::vector<float> logits_a(static_cast<size_t>(rows * vocabulary)), logits_b(logits_a.size());
  const auto feed = [&](std::span<const int32_t> piece, int64_t count) {
    const auto used = static_cast<size_t>(count * vocabulary);
    const auto inputs = piece.first(static_cast<size_t>(count));
    a->append_all(inputs, std::span(logits_a).first(used));
    b->append_all(inputs, std::span(logits_b).first(used));
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i * vocabulary), width = static_cast<size_t>(vocabulary);
      const std::span<const float> row_a = std::span(logits_a).subspan(at, width), row_b = std::span(logits_b).subspan(at, width);
      const int32_t next = piece[static_cast<size_t>(i) + 1];
      result.a.sum += score(row_a, next);
      result.b.sum += score(row_b, next);
      result.kl += divergence(row_a, row_b);
      const std::vector<int32_t> top_a = top_ids(row_a, kTop), top_b = top_ids(row_b, kTop);
      result.top1 += top_a.front() == top_b.front() ? 1 : 0;
      for (const int32_t id : top_a) result.top5 += std::ranges::find(top_b, id) != top_b.end() ? 1 : 0;
    }
    result.a.tokens += count;
    result.b.tokens += count;
  };
  const auto begin = [&] {
    a->reset();
    b->reset();
  };
  result.a.complete = result.b.complete = each_piece(ids, window, rows, hooks, begin, feed);
  return result;
}

Fidelity greedy_fidelity(TokenModel* a, TokenModel* b, std::span<const int32_t> ids, int64_t count, int64_t prompt, int64_t tokens,
                         const EvaluateHooks& hooks) {
  Fidelity result;
  const auto total = static_cast<int64_t>(ids.size());
  const int64_t longest = std::min({prompt, total, a->context() - tokens + 1, b->context() - tokens + 1});
  if (longest < 1 || count < 1 || tokens < 1) return result;
  std::vector<float> logits(static_cast<size_t>(a->vocabulary()));
  const auto next = [&](TokenModel* model, std::span<const int32_t> given) {
    model->append_last(given, logits);
    return pick_greedy(logits);
  };
  for (int64_t i = 0; i < count; ++i) {
    if (stop(hooks)) break;
    const int64_t start = count == 1 ? 0 : (total - longest) / (count - 1) * i;
    const auto given = ids.subspan(static_cast<size_t>(start), static_cast<size_t>(longest));
    a->reset();
    b->reset();
    int32_t of_a = next(a, given), of_b = next(b, given);
    int64_t agreed = 0;
    while (of_a == of_b && ++agreed < tokens) {
      const int32_t last = of_a;
      of_a = next(a, std::span(&last, 1));
      of_b = next(b, std::span(&last, 1));
    }
    ++result.prompts;
    result.tokens += tokens;
    result.agreed += agreed;
    result.whole += agreed == tokens ? 1 : 0;
  }
  return result;
}

}  // namespace ref
