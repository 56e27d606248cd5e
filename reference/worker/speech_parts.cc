// SPDX-License-Identifier: Apache-2.0
#include "reference/worker/speech_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "reference/qwen3_tts/codec/decoder.h"
#include "reference/qwen3_tts/model/code_predictor.h"
#include "reference/qwen3_tts/model/generator.h"
#include "reference/qwen3_tts/model/talker.h"

namespace ref::worker {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// What is asked for: `m` frames after a prompt of `depth` rows.
struct Question {
  std::string part;
  int64_t m, depth;
  uint32_t threads;
};

Question read_question(const SpeechSettings& settings, const json& question) {
  if (question.at("op") != "speech") throw Refused("serves --op speech");
  const auto shape = question.at("shape").get<std::string>();
  const uint32_t threads = settings.threads > 0 ? settings.threads : question.at("threads").get<uint32_t>();
  return {shape.substr(0, shape.find('-')), question.at("m"), question.at("depth"), threads};
}

tts::SpeechSampling sampling_of(const SpeechSettings& settings) {
  tts::SpeechSampling sampling;
  sampling.sample = sampling.predictor_sample = !settings.greedy;
  sampling.seed = 1;
  return sampling;
}

// A frame of codes that looks like any other.
tts::Frame frame_at(int64_t index, int64_t codes) {
  tts::Frame frame;
  for (int64_t book = 0; book < tts::kCodebooks; ++book) {
    frame[static_cast<size_t>(book)] = static_cast<int32_t>((7919 * index + 104729 * book + 13) % codes);
  }
  return frame;
}

std::vector<tts::Frame> frames_from(int64_t first, int64_t count, int64_t codes) {
  std::vector<tts::Frame> frames;
  for (int64_t i = 0; i < count; ++i) frames.push_back(frame_at(first + i, codes));
  return frames;
}

// A text whose prompt, with all of the text in it, has `depth` rows.
tts::PromptRequest request_of(const tts::Config& config, int64_t depth) {
  constexpr int64_t kOthers = 9;  // role, tags, pad, the end of the text and the first row of speech
  if (depth <= kOthers) throw Refused(fmt::format("a prompt has more than {} rows", kOthers));
  tts::PromptRequest request;
  request.streaming_text = false;
  request.ids.text = {config.im_start, config.assistant, 0};
  for (int64_t i = 0; i < depth - kOthers; ++i) {
    request.ids.text.push_back(static_cast<int32_t>((7919 * i + 13) % (config.talker.text_vocabulary / 2)));
  }
  const std::vector<int32_t> end = {config.im_end, 0, config.im_start, config.assistant, 0};
  request.ids.text.insert(request.ids.text.end(), end.begin(), end.end());
  return request;
}

// What every part stands on: threads and weights.
class Base : public Served {
 public:
  Base(const SpeechSettings& settings, const Question& question)
      : settings_(settings), question_(question), pool_(question.threads) {
    const auto memory = settings.memory == "huge" ? WeightsMemory::kHuge : WeightsMemory::kMapped;
    weights_ = load_packed(settings.model, memory, pool_.parallel());
  }

  std::string detail() const override {
    return fmt::format("{}, {} weights, {} cache{}", settings_.model, settings_.memory, settings_.kv, more_);
  }

  double run(int64_t calls) override {
    prepare();
    warm();
    Clock::duration spent{0};
    for (int64_t i = 0; i < calls; ++i) {
      prepare();
      const auto from = Clock::now();
      call();
      spent += Clock::now() - from;
    }
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }

 protected:
  virtual void prepare() {}  // never timed
  virtual void call() = 0;
  virtual void warm() { call(); }  // wakes the threads

  tts::Talker talker(int64_t more) const {
    tts::TalkerOptions options;
    options.context = question_.depth + more;
    options.cache = cache_type(settings_.kv);
    options.parallel = pool_.parallel();
    return {weights_, options};
  }
  tts::CodePredictor predictor() const {
    tts::PredictorOptions options;
    options.cache = cache_type(settings_.kv);
    options.parallel = pool_.parallel();
    return {weights_, options};
  }
  tts::CodecDecoder codec() const {
    tts::CodecDecoderOptions options;
    options.max_frames = settings_.codec_rows;
    options.fp32 = settings_.codec_fp32;
    options.parallel = pool_.parallel();
    return {weights_, options};
  }
  std::string codec_text() const {
    return fmt::format(", codec rows {}{}", settings_.codec_rows, settings_.codec_fp32 ? " in fp32" : "");
  }

  SpeechSettings settings_;
  Question question_;
  Pool pool_;
  std::shared_ptr<const ModelWeights> weights_;
  std::string more_;
};

// The embeddings of a frame, the layers, the head: one position on, for some hundred positions.
class TalkerStep final : public Base {
 public:
  TalkerStep(const SpeechSettings& settings, const Question& question) : Base(settings, question), talker_(talker(kDrift)) {
    prompt_ = talker_.prompt(request_of(talker_.config(), question_.depth));
    row_.resize(static_cast<size_t>(talker_.config().talker.stack.hidden));
    talker_.append(prompt_.rows);
  }
  double bytes() const override { return static_cast<double>(talker_.weight_bytes_per_step()); }

 private:
  static constexpr int64_t kDrift = 512;

  void prepare() override {
    if (talker_.position() < talker_.context()) return;
    talker_.reset();
    talker_.append(prompt_.rows);
  }
  void warm() override {
    call();
    prepare();
  }
  void call() override {
    talker_.embed(frame_at(talker_.position(), talker_.config().predictor.vocabulary), row_);
    const std::span<const float> pad = talker_.pad_row();
    for (size_t i = 0; i < row_.size(); ++i) row_[i] += pad[i];
    talker_.append(row_);
  }

  tts::Talker talker_;
  tts::Prompt prompt_;
  std::vector<float> row_;
};

// Codebooks 1 to 15 of a frame with their sampling.
class PredictorFrame final : public Base {
 public:
  PredictorFrame(const SpeechSettings& settings, const Question& question)
      : Base(settings, question), predictor_(predictor()), sampler_(tts::CodecSampler::of_predictor(sampling_of(settings))) {
    tts::Talker talker = this->talker(0);
    talker.append(talker.prompt(request_of(talker.config(), question_.depth)).rows);
    hidden_.assign(talker.hidden().begin(), talker.hidden().end());
    const std::span<const float> row = talker.codec_row(kCode);
    row_.assign(row.begin(), row.end());
    more_ = settings.greedy ? ", greedy" : ", sampled";
  }
  double bytes() const override { return static_cast<double>(predictor_.weight_bytes_per_frame()); }

 private:
  static constexpr int32_t kCode = 5;

  void call() override {
    predictor_.frame(hidden_, kCode, row_, [this](int64_t, std::span<float> logits) { return sampler_.pick(logits); });
  }

  tts::CodePredictor predictor_;
  tts::CodecSampler sampler_;
  std::vector<float> hidden_, row_;
};

// `m` frames of a stream.
class CodecFrames final : public Base {
 public:
  CodecFrames(const SpeechSettings& settings, const Question& question)
      : Base(settings, question),
        codec_(codec()),
        samples_(static_cast<size_t>(question.m * tts::kFrameSamples)),
        codes_(tts::read_config(weights_->config, settings.model).decoder.codebook_size) {
    more_ = codec_text();
  }
  double bytes() const override { return question_.m > settings_.codec_rows ? 0 : static_cast<double>(codec_.weight_bytes()); }

 private:
  static constexpr int64_t kLongest = 1000;  // frames of a stream

  void prepare() override {
    if (codec_.position() + question_.m > kLongest) codec_.reset();
    frames_ = frames_from(codec_.position(), question_.m, codes_);
  }
  void call() override { codec_.decode(frames_, samples_); }

  tts::CodecDecoder codec_;
  std::vector<float> samples_;
  std::vector<tts::Frame> frames_;
  int64_t codes_;
};

// From the text on: prompt, `m` frames, their samples. `first`: until these are there; else the talker is asked whether speech
// ends.
class Speech final : public Base {
 public:
  Speech(const SpeechSettings& settings, const Question& question, bool first)
      : Base(settings, question),
        first_(first),
        talker_(talker(question.m + 1)),
        predictor_(predictor()),
        codec_(codec()),
        generator_(&talker_, &predictor_),
        samples_(static_cast<size_t>(question.m * tts::kFrameSamples)),
        chunk_(first ? question.m : settings.codec_chunk),
        request_(request_of(talker_.config(), question.depth)) {
    hooks_.talker_logits = [eos = talker_.config().talker.eos](int64_t, std::span<float> logits) {
      logits[static_cast<size_t>(eos)] = -std::numeric_limits<float>::infinity();  // random weights may end at once
    };
    more_ = fmt::format("{}, {} frames to the codec at once, {}", codec_text(), chunk_, settings.greedy ? "greedy" : "sampled");
  }

 private:
  void warm() override {
    const std::vector<tts::Frame> frames = frames_from(0, 1, talker_.config().predictor.vocabulary);
    codec_.decode(frames, std::span<float>(samples_).first(tts::kFrameSamples));
  }
  void call() override {
    codec_.reset();
    frames_.clear();
    done_ = 0;
    generator_.start(talker_.prompt(request_), sampling_of(settings_), question_.m, hooks_);
    while (static_cast<int64_t>(frames_.size()) < question_.m) {
      frames_.push_back(generator_.next().value());
      if (static_cast<int64_t>(frames_.size()) - done_ == chunk_) decode();
    }
    if (!first_ && generator_.next().has_value()) throw Error("more frames than were asked for");
    decode();
  }
  void decode() {
    const int64_t count = static_cast<int64_t>(frames_.size()) - done_;
    if (count == 0) return;
    codec_.decode(std::span<const tts::Frame>(frames_).last(static_cast<size_t>(count)),
                  std::span<float>(samples_).subspan(static_cast<size_t>(done_ * tts::kFrameSamples),
                                                     static_cast<size_t>(count * tts::kFrameSamples)));
    done_ += count;
  }

  bool first_;
  tts::Talker talker_;
  tts::CodePredictor predictor_;
  tts::CodecDecoder codec_;
  tts::Generator generator_;
  std::vector<float> samples_;
  int64_t chunk_, done_ = 0;
  tts::PromptRequest request_;
  tts::GeneratorHooks hooks_;
  std::vector<tts::Frame> frames_;
};

}  // namespace

std::unique_ptr<Served> make_speech_part(const SpeechSettings& settings, const json& question) {
  const Question asked = read_question(settings, question);
  if (asked.part == "talker") return std::make_unique<TalkerStep>(settings, asked);
  if (asked.part == "predictor") return std::make_unique<PredictorFrame>(settings, asked);
  if (asked.part == "codec") return std::make_unique<CodecFrames>(settings, asked);
  if (asked.part == "whole" || asked.part == "first") return std::make_unique<Speech>(settings, asked, asked.part == "first");
  throw Refused(fmt::format("no part \"{}\": talker, predictor, codec, whole, first", asked.part));
}

}  // namespace ref::worker
