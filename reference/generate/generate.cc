// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/generate.h"

#include <algorithm>
#include <chrono>

#include "reference/core/error.h"
#include "reference/generate/stop_matcher.h"

namespace ref {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Token ids to the text that a reader sees: whole characters, stop texts cut off.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const GenerateOptions& options, const GenerateHooks& hooks, std::string* text)
      : matcher_(options.stops), hooks_(hooks), text_(text) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, !options.show_special);
  }

  // Why the text ends here, if it does.
  std::optional<StopReason> push(int32_t id) {
    if (hooks_.token) hooks_.token(id);
    if (!decoder_) return std::nullopt;
    if (!show(matcher_.push(decoder_->push(id)))) return StopReason::kClosed;
    if (matcher_.stopped()) return StopReason::kStop;
    return std::nullopt;
  }

  // What was held back in the hope of more.
  std::optional<StopReason> finish() {
    if (!decoder_ || matcher_.stopped()) return std::nullopt;
    if (!show(matcher_.push(decoder_->finish()))) return StopReason::kClosed;
    if (matcher_.stopped()) return StopReason::kStop;
    if (!show(matcher_.finish())) return StopReason::kClosed;
    return std::nullopt;
  }

 private:
  bool show(const std::string& text) {
    *text_ += text;
    return text.empty() || !hooks_.write || hooks_.write(text);
  }

  std::optional<StreamingDecoder> decoder_;
  StopMatcher matcher_;
  const GenerateHooks& hooks_;
  std::string* text_;
};

class Generation {
 public:
  Generation(TokenModel* model, const Tokenizer* tokenizer, const GenerateOptions& options, const GenerateHooks& hooks)
      : model_(*model),
        options_(options),
        hooks_(hooks),
        generator_(options.seed),
        stream_(tokenizer, options, hooks, &result_.text) {}

  GenerateResult run(std::span<const int32_t> prompt) {
    history_.assign(prompt.begin(), prompt.end());
    result_.prompt_tokens = static_cast<int64_t>(prompt.size());
    logits_.resize(static_cast<size_t>(model_.vocabulary()));
    const Clock::time_point start = Clock::now();
    const bool read = read_prompt(prompt);
    result_.prefill_seconds = seconds_since(start);
    const Clock::time_point first = Clock::now();
    result_.reason = read ? decode() : StopReason::kInterrupted;
    if (result_.reason != StopReason::kClosed) result_.reason = stream_.finish().value_or(result_.reason);
    result_.decode_seconds = read ? seconds_since(first) : 0;
    return std::move(result_);
  }

 private:
  bool interrupted() const { return hooks_.interrupted && hooks_.interrupted(); }

  bool read_prompt(std::span<const int32_t> prompt) {
    const auto step = static_cast<size_t>(std::max<int64_t>(options_.step, 1));
    while (prompt.size() > step) {
      if (interrupted()) return false;
      model_.append(prompt.first(step));
      prompt = prompt.subspan(step);
    }
    if (interrupted()) return false;
    model_.append_last(prompt, logits_);
    return true;
  }

  StopReason decode() {
    for (;;) {
      const auto made = static_cast<int64_t>(result_.ids.size());
      if (made >= options_.max_tokens) return StopReason::kMaxTokens;
      const int32_t id = sample_token(options_.sampling, history_, static_cast<uint32_t>(made), logits_, &generator_);
      if (std::ranges::find(options_.sampling.end_tokens, id) != options_.sampling.end_tokens.end()) {
        result_.end_token = id;
        return StopReason::kEos;
      }
      result_.ids.push_back(id);
      history_.push_back(id);
      if (const std::optional<StopReason> reason = stream_.push(id)) return *reason;
      if (made + 1 >= options_.max_tokens) return StopReason::kMaxTokens;
      if (model_.position() >= model_.context()) return StopReason::kContext;
      if (interrupted()) return StopReason::kInterrupted;
      model_.append_last(std::span(&id, 1), logits_);
      ++result_.decode_steps;
    }
  }

  TokenModel& model_;
  const GenerateOptions& options_;
  const GenerateHooks& hooks_;
  Generator generator_;
  GenerateResult result_;
  TextStream stream_;
  std::vector<int32_t> history_;
  std::vector<float> logits_;
};

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEos:
      return "eos";
    case StopReason::kStop:
      return "stop";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kContext:
      return "context";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kClosed:
      return "closed";
  }
  return "?";
}

GenerateResult generate(TokenModel* model, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                        const GenerateOptions& options, const GenerateHooks& hooks) {
  check_sampling(options.sampling, model->vocabulary());
  if (prompt.empty()) throw Error("the prompt has no token, so that there is nothing to predict from");
  if (static_cast<int64_t>(prompt.size()) > model->context()) {
    throw Error("the prompt has " + std::to_string(prompt.size()) + " tokens, more than the context of " +
                std::to_string(model->context()));
  }
  if (!options.stops.empty() && tokenizer == nullptr) throw Error("stop texts need a tokenizer");
  model->reset();
  return Generation(model, tokenizer, options, hooks).run(prompt);
}

}  // namespace ref
