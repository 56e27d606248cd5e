// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/compare.h"

#include <algorithm>
#include <cmath>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

// Logits of one frame, all codebooks.
class FrameLogits {
 public:
  explicit FrameLogits(const Config& config) : config_(config) {}

  GeneratorHooks hooks(std::span<const Frame> frames) {
    GeneratorHooks hooks;
    hooks.talker_logits = [this](int64_t, std::span<float> logits) { take_codec(logits); };
    hooks.predictor_logits = [this](int64_t, int64_t codebook, std::span<float> logits) {
      logits_[static_cast<size_t>(codebook)].assign(logits.begin(), logits.end());
    };
    hooks.forced = [frames](int64_t frame, int64_t codebook) -> std::optional<int32_t> {
      if (frame == static_cast<int64_t>(frames.size())) return 0;  // no frame follows
      return frames[static_cast<size_t>(frame)][static_cast<size_t>(codebook)];
    };
    return hooks;
  }
  std::span<const float> of(size_t codebook) const { return logits_[codebook]; }

 private:
  // Codes, then the end of speech.
  void take_codec(std::span<const float> logits) {
    const auto codes = static_cast<size_t>(config_.talker.vocabulary - kControlIds);
    logits_[0].assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(codes));
    const auto eos = static_cast<size_t>(config_.talker.eos);
    if (eos >= codes) logits_[0].push_back(logits[eos]);
  }

  const Config& config_;
  std::array<std::vector<float>, kCodebooks> logits_;
};

size_t first_of(std::span<const float> logits) { return static_cast<size_t>(std::ranges::max_element(logits) - logits.begin()); }

// Ids that come before `id` when ranked by logit, then by number.
int64_t rank_of(std::span<const float> logits, size_t id) {
  int64_t before = 0;
  for (size_t i = 0; i < logits.size(); ++i) before += logits[i] > logits[id] || (logits[i] == logits[id] && i < id) ? 1 : 0;
  return before;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  std::vector<double> result(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) result[i] = static_cast<double>(logits[i]) - most - std::log(sum);
  return result;
}

double divergence(std::span<const float> reference, std::span<const float> candidate) {
  const std::vector<double> p = log_softmax(reference), q = log_softmax(candidate);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return std::max(0.0, sum);
}

// Sums until finish() divides them.
void add(Agreement* total, std::span<const float> reference, std::span<const float> candidate) {
  const size_t first = first_of(reference);
  const int64_t rank = rank_of(candidate, first);
  ++total->steps;
  total->top1 += rank == 0 ? 1 : 0;
  total->top5 += rank < 5 ? 1 : 0;
  total->kl += divergence(reference, candidate);
}

void add(Agreement* total, const Agreement& part) {
  const auto steps = static_cast<double>(part.steps);
  total->steps += part.steps;
  total->top1 += part.top1 * steps;
  total->top5 += part.top5 * steps;
  total->kl += part.kl * steps;
}

void divide(Agreement* total) {
  if (total->steps == 0) return;
  const auto steps = static_cast<double>(total->steps);
  total->top1 /= steps;
  total->top5 /= steps;
  total->kl /= steps;
}

void finish(CompareReport* report) {
  for (Agreement& codebook : report->codebooks) divide(&codebook);
  report->others = {};
  for (size_t j = 1; j < report->codebooks.size(); ++j) add(&report->others, report->codebooks[j]);
  divide(&report->others);
}

void check_models(const SpeechModel& one, const SpeechModel& other) {
  if (one.talker == other.talker || one.predictor == other.predictor) throw Error("a model cannot be compared in step with itself");
  const Config &a = one.talker->config(), &b = other.talker->config();
  if (a.talker.vocabulary == b.talker.vocabulary && a.predictor.vocabulary == b.predictor.vocabulary &&
      a.talker.eos == b.talker.eos && a.talker.text_vocabulary == b.talker.text_vocabulary) {
    return;
  }
  throw Error("the two models have vocabularies of " + std::to_string(a.talker.vocabulary) + " and " +
              std::to_string(b.talker.vocabulary) + " codec ids: they cannot be compared");
}

}  // namespace

std::vector<Frame> make_frames(const SpeechModel& model, const PromptRequest& request, const SpeechSampling& sampling,
                               int64_t frames) {
  Generator generator(model.talker, model.predictor);
  generator.start(model.talker->prompt(request), sampling, frames);
  std::vector<Frame> made;
  while (const std::optional<Frame> frame = generator.next()) made.push_back(*frame);
  return made;
}

CompareReport compare_models(const SpeechModel& reference, const SpeechModel& candidate, const PromptRequest& request,
                             std::span<const Frame> frames, const std::function<void(int64_t)>& progress) {
  check_models(reference, candidate);
  FrameLogits ours(reference.talker->config()), theirs(candidate.talker->config());
  Generator first(reference.talker, reference.predictor), second(candidate.talker, candidate.predictor);
  const auto count = static_cast<int64_t>(frames.size());
  first.start(reference.talker->prompt(request), {}, count, ours.hooks(frames));
  second.start(candidate.talker->prompt(request), {}, count, theirs.hooks(frames));
  CompareReport report;
  // In step, so that the logits of one frame are all that is held.
  for (int64_t done = 1; first.next() && second.next(); ++done) {
    for (size_t j = 0; j < report.codebooks.size(); ++j) add(&report.codebooks[j], ours.of(j), theirs.of(j));
    if (progress) progress(done);
  }
  finish(&report);
  return report;
}

CompareReport merge(std::span<const CompareReport> reports) {
  CompareReport total;
  for (const CompareReport& report : reports) {
    for (size_t j = 0; j < total.codebooks.size(); ++j) add(&total.codebooks[j], report.codebooks[j]);
  }
  finish(&total);
  return total;
}

}  // namespace ref::tts
