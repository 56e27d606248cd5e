// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/parity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/shape_text.h"

namespace ref::tts {
namespace {

using omni_files::SafetensorsFile;
using omni_files::Tensor;

// What may not be drawn is -Inf here and a large negative number there.
constexpr double kLeastScore = -65536;

// In the order in which a request makes them.
constexpr const char* kOrder[] = {"prompt_embeds", "trailing_text_hidden", "tts_pad_embed",  "prefill_hidden",  "talker_logits",
                                  "talker_scores", "codec0_tokens",        "cp_first_input", "cp_first_hidden", "cp_logits",
                                  "codes",         "step_embeds",          "step_hidden",    "step_positions",  "wav"};

std::vector<double> values_of(const SafetensorsFile& golden, const std::string& name) {
  const Tensor& tensor = golden.at(name);
  std::vector<double> values;
  if (tensor.dtype == "F32") {
    for (const float value : tensor.as<float>()) values.push_back(value);
  } else if (tensor.dtype == "I64") {
    for (const int64_t value : tensor.as<int64_t>()) values.push_back(static_cast<double>(value));
  } else {
    throw Error(golden.name() + ": tensor \"" + name + "\" is " + tensor.dtype + ", not F32 or I64");
  }
  return values;
}

// What a run made, by the golden's names; rows one behind the other.
class Record {
 public:
  void add(const std::string& name, std::span<const float> values) {
    std::vector<double>& all = made_[name];
    all.insert(all.end(), values.begin(), values.end());
  }
  void add(const std::string& name, double value) { made_[name].push_back(value); }
  const std::map<std::string, std::vector<double>>& made() const { return made_; }

 private:
  std::map<std::string, std::vector<double>> made_;
};

// Rows of both stacks under the golden's names.
class Watcher final : public Observer {
 public:
  Watcher(Record* record, int64_t prompt) : record_(record), prompt_(prompt) {}

  bool wants(const std::string& name) const override {
    return name == "talker.input" || name == "talker.hidden" || name == "predictor.input" || name == "predictor.hidden";
  }
  void tensor(const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype, const void* data,
              int64_t ld) override {
    const bool talker = name.starts_with("talker"), input = name.ends_with("input");
    for (int64_t i = 0; i < rows; ++i, ++position) {
      const std::span<const float> row(static_cast<const float*>(data) + i * ld, static_cast<size_t>(columns));
      if (!talker) {
        if (position < 2) record_->add(input ? "cp_first_input" : "cp_first_hidden", row);
      } else if (position < prompt_) {
        if (!input) record_->add("prefill_hidden", row);
      } else {
        record_->add(input ? "step_embeds" : "step_hidden", row);
        if (input) record_->add("step_positions", static_cast<double>(position));
      }
    }
  }

 private:
  Record* record_;
  int64_t prompt_;
};

// `golden` may be what ours is not: of another length, or full of NaN.
SpeechTensor compare(const std::string& name, const std::vector<double>& ours, const Tensor& tensor,
                     const std::vector<double>& golden, double tolerance) {
  SpeechTensor result;
  result.name = name;
  result.tolerance = tolerance;
  if (ours.size() != golden.size()) {
    result.largest = std::numeric_limits<double>::infinity();
    return result;
  }
  const int64_t columns = tensor.shape.size() > 1 ? tensor.elements() / std::max<int64_t>(1, tensor.shape[0]) : 1;
  double error = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double mine = std::max(ours[i], kLeastScore), other = std::max(golden[i], kLeastScore);
    double difference = std::abs(mine - other);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (tensor.dtype == "I64") difference = std::min(difference, 1.0);
    error += difference * difference;
    size += other * other;
    if (difference > tolerance) ++result.differences;
    if (difference <= result.largest) continue;
    result.largest = difference;
    result.row = static_cast<int64_t>(i) / columns;
  }
  result.relative = error == 0 ? 0 : std::sqrt(error / size);
  return result;
}

int32_t largest(std::span<const float> logits) { return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()); }

// Through the golden's frames; what greedy picks would be is recorded, not followed.
void run_forced(Talker* talker, CodePredictor* predictor, const Prompt& prompt, const std::vector<Frame>& frames, Record* record) {
  Watcher watcher(record, prompt.length);
  GeneratorHooks hooks;
  hooks.observer = &watcher;
  hooks.talker_logits = [&](int64_t, std::span<float> logits) { record->add("talker_logits", logits); };
  hooks.talker_scores = [&](int64_t, std::span<const float> scores) {
    record->add("talker_scores", scores);
    record->add("codec0_tokens", largest(scores));
  };
  hooks.predictor_logits = [&](int64_t frame, int64_t codebook, std::span<float> logits) {
    record->add("cp_logits", logits);
    if (codebook == 1) record->add("codes", frames[static_cast<size_t>(frame)][0]);  // compared as codec0_tokens
    record->add("codes", largest(logits));
  };
  hooks.forced = [&](int64_t frame, int64_t codebook) -> std::optional<int32_t> {
    if (frame == static_cast<int64_t>(frames.size())) return std::nullopt;
    return frames[static_cast<size_t>(frame)][static_cast<size_t>(codebook)];
  };
  SpeechSampling greedy;
  greedy.sample = greedy.predictor_sample = false;
  Generator generator(talker, predictor);
  generator.start(prompt, greedy, static_cast<int64_t>(frames.size()), hooks);
  while (generator.next()) {
  }
}

// The reference's cut in front: the share of the reference frames of all samples, in double.
void add_wave(const SafetensorsFile& golden, const GoldenRequest& request, const SpeechParityOptions& options, Record* record) {
  std::vector<Frame> frames = request.voice.frames;
  frames.insert(frames.end(), request.frames.begin(), request.frames.end());
  const std::vector<float> wave = options.decode(frames);
  const auto before = static_cast<double>(request.voice.frames.size()), all = static_cast<double>(frames.size());
  const auto cut = frames.empty() ? size_t{0} : static_cast<size_t>(before / all * static_cast<double>(wave.size()));
  if (golden.find("wav") != nullptr) record->add("wav", std::span(wave).subspan(cut));
}

}  // namespace

const SpeechTensor* SpeechParity::first_departure() const {
  const auto found = std::ranges::find_if(tensors, &SpeechTensor::departs);
  return found == tensors.end() ? nullptr : &*found;
}

const SpeechTensor* SpeechParity::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &SpeechTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

SpeechParity compare_with_golden(Talker* talker, CodePredictor* predictor, const SafetensorsFile& golden,
                                 const SpeechParityOptions& options) {
  const GoldenRequest request = read_golden_request(*talker, golden, options.speaker);
  const Prompt prompt = talker->prompt(request.request());
  Record record;
  record.add("prompt_embeds", prompt.rows);
  record.add("trailing_text_hidden", prompt.trailing);
  record.add("tts_pad_embed", talker->pad_row());
  run_forced(talker, predictor, prompt, request.frames, &record);
  if (options.decode) add_wave(golden, request, options, &record);

  SpeechParity parity;
  parity.frames = static_cast<int64_t>(request.frames.size());
  const bool derived = !request.voice.speaker.empty() && options.speaker == nullptr;
  if (derived) parity.note = "the speaker is that of the golden's own prompt";
  for (const std::string name : kOrder) {
    const Tensor* tensor = golden.find(name);
    const auto made = record.made().find(name);
    if (tensor == nullptr || made == record.made().end()) continue;
    const bool wave = name == "wav", ids = tensor->dtype == "I64";
    const double tolerance = ids ? 0 : wave ? options.tolerance.wave : options.tolerance.rows;
    parity.tensors.push_back(compare(name, made->second, *tensor, values_of(golden, name), tolerance));
  }
  return parity;
}

}  // namespace ref::tts
