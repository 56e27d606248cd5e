// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/generator.h"

#include <algorithm>
#include <chrono>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

// Frames whose first code may not be the end of speech.
constexpr uint32_t kLeastTokens = 2;

// One step of SplitMix64 (Steele, Lea and Flood, 2014): any two seeds give unlike halves.
uint64_t mix(uint64_t seed) {
  seed += 0x9E3779B97F4A7C15u;
  seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
  seed = (seed ^ seed >> 27) * 0x94D049BB133111EBu;
  return seed ^ seed >> 31;
}

// What happens to the raw logits of codebook 0 whether tokens are drawn or not.
SamplingOptions penalties(const SpeechSampling& sampling, const TalkerConfig& talker) {
  SamplingOptions options;
  options.temperature = 0;
  options.repetition_penalty = sampling.repetition_penalty;
  options.min_new_tokens = kLeastTokens;
  options.end_tokens = {talker.eos};
  for (int64_t id = talker.vocabulary - kControlIds; id < talker.vocabulary; ++id) {
    if (id != talker.eos) options.suppressed.push_back(static_cast<int32_t>(id));
  }
  return options;
}

SamplingOptions drawing(bool sample, double temperature, int64_t top_k, double top_p) {
  SamplingOptions options;
  options.temperature = sample ? temperature : 0;
  options.top_k = top_k;
  options.top_p = top_p;
  return options;
}

void check_named(const SamplingOptions& options, int64_t vocabulary, const char* whose) {
  try {
    check_sampling(options, vocabulary);
    if (options.top_k < 0) throw Error("top-k must be at least 0, not " + std::to_string(options.top_k));
  } catch (const Error& error) {
    throw Error(std::string(whose) + error.what());
  }
}

}  // namespace

struct Generator::State {
  State(Talker* borrowed_talker, CodePredictor* borrowed_predictor) : talker(borrowed_talker), predictor(borrowed_predictor) {}

  std::optional<int32_t> first_code();
  int32_t pick(int64_t codebook, const SamplingOptions& options, std::span<float> logits, ref::Generator* random);
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
  SamplingOptions penalties, draw, predictor_draw;
  ref::Generator random{0}, predictor_random{0};
};

Generator::Generator(Talker* talker, CodePredictor* predictor) : state_(std::make_unique<State>(talker, predictor)) {}
Generator::~Generator() = default;

Stop Generator::stop() const { return state_->stop; }
int64_t Generator::frames() const { return state_->frames; }
const FrameTimes& Generator::times() const { return state_->times; }

void Generator::start(const Prompt& prompt, const SpeechSampling& sampling, int64_t max_frames, const GeneratorHooks& hooks) {
  State& state = *state_;
  const Config& config = state.talker->config();
  state.penalties = penalties(sampling, config.talker);
  state.draw = drawing(sampling.sample, sampling.temperature, sampling.top_k, sampling.top_p);
  state.predictor_draw =
      drawing(sampling.predictor_sample, sampling.predictor_temperature, sampling.predictor_top_k, sampling.predictor_top_p);
  check_named(state.penalties, config.talker.vocabulary, "");
  check_named(state.draw, config.talker.vocabulary, "");
  check_named(state.predictor_draw, config.predictor.vocabulary, "sub-talker ");
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
  const uint64_t mixed = mix(sampling.seed);
  state.random = ref::Generator(mixed & 0xFFFFFFFFu);
  state.predictor_random = ref::Generator(mixed >> 32);
  state.talker->reset();
  state.talker->append(prompt.rows, hooks.observer);
  state.stop = Stop::kRunning;
}

// What hooks or the sampler choose of processed logits.
int32_t Generator::State::pick(int64_t codebook, const SamplingOptions& options, std::span<float> logits,
                               ref::Generator* random_of) {
  std::optional<int32_t> id;
  if (hooks.forced) id = hooks.forced(frames, codebook);
  if (!id) {
    try {
      id = sample_token(options, {}, 0, logits, random_of);
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
  process_logits(penalties, history, static_cast<uint32_t>(std::min<size_t>(history.size(), kLeastTokens)), scores);
  if (hooks.talker_scores) hooks.talker_scores(frames, scores);
  const int32_t code = pick(0, draw, scores, &random);
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
    const int32_t code = pick(codebook, predictor_draw, logits, &predictor_random);
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

std::optional<Frame> Generator::next() {
  State& state = *state_;
  if (state.stop != Stop::kRunning) return std::nullopt;
  state.times = {};
  const Clock::time_point begin = Clock::now();
  if (state.frames > 0) {
    if (state.talker->position() == state.talker->context()) {
      state.stop = Stop::kContextFull;
      return std::nullopt;
    }
    state.feed_back();
  }
  const Clock::time_point stepped = Clock::now();
  state.times.talker = seconds(begin, stepped);
  const std::optional<int32_t> code = state.first_code();
  state.times.sampling = seconds(stepped, Clock::now());
  if (!code) return std::nullopt;
  state.last = state.complete(*code);
  ++state.frames;
  return state.last;
}

}  // namespace ref::tts
