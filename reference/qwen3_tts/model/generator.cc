// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/generator.h"

#include <algorithm>
#include <chrono>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

struct Generator::State {
  State(Talker* borrowed_talker, CodePredictor* borrowed_predictor) : talker(borrowed_talker), predictor(borrowed_predictor) {}

  std::optional<Frame> next();
  std::optional<int32_t> first_code();
  int32_t pick(int64_t codebook, CodecSampler* sampler, std::span<float> scores);
  void feed_back();
  Frame complete(int32_t code0);

  Talker* talker;
  CodePredictor* predictor;
  GeneratorHooks hooks;
  int64_t max_frames = 0, frames = 0;
  Stop stop = Stop::kMaxFrames;
  FrameTimes times;
  Frame last = {};
  std::vector<float> trailing, row, scores;
  std::vector<int32_t> history;  // codes of codebook 0, of this run
  std::optional<CodecSampler> sampler, predictor_sampler;
};

Generator::Generator(Talker* talker, CodePredictor* predictor) : state_(std::make_unique<State>(talker, predictor)) {}
Generator::~Generator() = default;

Stop Generator::stop() const { return state_->stop; }
int64_t Generator::frames() const { return state_->frames; }
const FrameTimes& Generator::times() const { return state_->times; }

void Generator::start(const Prompt& prompt, const SpeechSampling& sampling, int64_t max_frames, const GeneratorHooks& hooks) {
  State& state = *state_;
  const Config& config = state.talker->config();
  state.sampler = CodecSampler::of_talker(sampling, config.talker);
  state.predictor_sampler = CodecSampler::of_predictor(sampling);
  if (max_frames < 0) throw Error("at most " + std::to_string(max_frames) + " frames");
  state.stop = Stop::kMaxFrames;  // also when the prefill throws
  state.hooks = hooks;
  state.max_frames = max_frames;
  state.frames = 0;
  state.times = {};
  state.trailing = prompt.trailing;
  state.row.resize(static_cast<size_t>(config.talker.stack.hidden));
  state.scores.resize(static_cast<size_t>(config.talker.vocabulary));
  state.history.clear();
  state.talker->reset();
  state.talker->append(prompt.rows, hooks.observer);
  state.stop = Stop::kRunning;
}

// What hooks or the sampler choose of scores.
int32_t Generator::State::pick(int64_t codebook, CodecSampler* sampler, std::span<float> scores) {
  std::optional<int32_t> id;
  if (hooks.forced) id = hooks.forced(frames, codebook);
  if (!id) {
    try {
      id = sampler->pick(scores);
    } catch (const Error& error) {
      throw Error("frame " + std::to_string(frames) + ", codebook " + std::to_string(codebook) + ": " + error.what());
    }
  }
  if (hooks.picked) hooks.picked(frames, codebook, *id);
  return *id;
}

// Nothing at the end of speech, or when no frame may follow.
std::optional<int32_t> Generator::State::first_code() {
  std::ranges::copy(talker->logits(), scores.begin());
  if (hooks.talker_logits) hooks.talker_logits(frames, scores);
  sampler->score(history, scores);
  if (hooks.talker_scores) hooks.talker_scores(frames, scores);
  const int32_t code = pick(0, &*sampler, scores);
  if (code == talker->config().talker.eos) stop = Stop::kEndOfSpeech;
  if (stop == Stop::kRunning && frames == max_frames) stop = Stop::kMaxFrames;
  if (stop != Stop::kRunning) return std::nullopt;
  history.push_back(code);
  return code;
}

Frame Generator::State::complete(int32_t code0) {
  Clock::time_point before = Clock::now();
  double sampling = 0;
  const auto pick_code = [&](int64_t codebook, std::span<float> logits) {
    const Clock::time_point ready = Clock::now();
    times.substep[static_cast<size_t>(codebook - 1)] = seconds(before, ready);
    times.predictor += seconds(before, ready);
    if (hooks.predictor_logits) hooks.predictor_logits(frames, codebook, logits);
    const int32_t code = pick(codebook, &*predictor_sampler, logits);
    before = Clock::now();
    sampling += seconds(ready, before);
    return code;
  };
  const Frame frame = predictor->frame(talker->hidden(), code0, talker->codec_row(code0), pick_code, hooks.observer);
  times.sampling += sampling;
  return frame;
}

// The last frame's embeddings, first summed, then the row of text that is due.
void Generator::State::feed_back() {
  talker->embed(last, row);
  const size_t width = row.size(), at = static_cast<size_t>(frames - 1) * width;
  const std::span<const float> text =
      at < trailing.size() ? std::span<const float>(trailing).subspan(at, width) : talker->pad_row();
  for (size_t i = 0; i < width; ++i) row[i] += text[i];
  talker->append(row, hooks.observer);
}

std::optional<Frame> Generator::State::next() {
  times = {};
  const Clock::time_point begin = Clock::now();
  if (frames > 0) {
    if (talker->position() == talker->context()) {
      stop = Stop::kContextFull;
      return std::nullopt;
    }
    feed_back();
  }
  const Clock::time_point stepped = Clock::now();
  times.talker = seconds(begin, stepped);
  const std::optional<int32_t> code = first_code();
  times.sampling = seconds(stepped, Clock::now());
  if (!code) return std::nullopt;
  last = complete(*code);
  ++frames;
  return last;
}

std::optional<Frame> Generator::next() {
  if (state_->stop != Stop::kRunning) return std::nullopt;
  try {
    return state_->next();
  } catch (...) {
    state_->stop = Stop::kMaxFrames;  // what the models hold no longer fits the frames
    throw;
  }
}

}  // namespace ref::tts
