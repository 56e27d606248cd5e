// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/decoder.h"

#include <algorithm>
#include <optional>

#include "reference/qwen3_tts/codec/convnext.h"
#include "reference/qwen3_tts/codec/quantiser.h"
#include "reference/qwen3_tts/codec/transformer.h"
#include "reference/qwen3_tts/codec/upsample_block.h"

namespace ref::tts {
namespace {

// Calls beyond this gain nothing: the weights are already read once for many rows.
constexpr int64_t kMostFrames = 256;
// Output rows of a block at once: its activations then stay in the second-level cache on their way through the residual units.
constexpr int64_t kBlockRows = 960;
constexpr int64_t kFirstTaps = 3, kTaps = 7;

int64_t checked_frames(int64_t frames) {
  if (frames < 1 || frames > kMostFrames) {
    throw Error("codec: " + std::to_string(frames) + " frames at once, must be 1 to " + std::to_string(kMostFrames));
  }
  return frames;
}

int64_t product(const std::vector<int64_t>& values) {
  int64_t result = 1;
  for (const int64_t value : values) result *= value;
  return result;
}

// NaN, which only damaged weights make, is silence: what writes samples as integers has no number for it.
void clamp(std::span<float> samples) {
  for (float& sample : samples) {
    if (!(sample >= -1.0F)) sample = sample < -1.0F ? -1.0F : 0.0F;
    if (sample > 1.0F) sample = 1.0F;
  }
}

void check_codes(std::span<const Frame> frames, int64_t codebook_size, int64_t first) {
  for (size_t i = 0; i < frames.size(); ++i) {
    for (size_t book = 0; book < frames[i].size(); ++book) {
      const int32_t id = frames[i][book];
      if (id < 0 || id >= codebook_size) {
        throw Error("codec: frame " + std::to_string(first + static_cast<int64_t>(i)) + ", codebook " + std::to_string(book) +
                    ": id " + std::to_string(id) + " is outside of 0.." + std::to_string(codebook_size - 1));
      }
    }
  }
}

}  // namespace

struct CodecDecoder::State {
  State(std::shared_ptr<const ModelWeights> model, const CodecDecoderOptions& wanted);

  void place(Placement* placement);
  void reset();
  void run(std::span<const Frame> frames, float* samples, Observer* observer);
  struct Latent {
    int64_t rows, position;
  };
  // Codes to the rows that the waveform's first convolution reads, which are its input's fresh ones.
  Latent run_latent(std::span<const Frame> frames, Observer* observer);
  void check_stream(std::span<const Frame> frames) const;
  int64_t lookback_frames() const;
  float* run_blocks(size_t block, const Rows2d& x, int64_t rows, int64_t position, float* samples, Observer* observer);
  void run_output(const Rows2d& x, uint32_t rows, int64_t position, float* samples, Observer* observer);
  void make_blocks(const ModelContext& context);
  uint64_t history_bytes() const;

  std::shared_ptr<const ModelWeights> weights;
  CodecDecoderConfig config;
  int64_t max_frames;
  Backend backend;
  LinearPlans linear_plans;
  PlanMap plans;
  StageClock clock;

  std::optional<Quantiser> quantiser;
  std::optional<Conv1d> pre_conv, in_conv, out_conv;
  HistoryRows pre_conv_input, in_conv_input, out_conv_input;
  std::optional<CodecTransformer> transformer;
  std::vector<ConvNextStage> upsamples;
  std::vector<UpsampleBlock> blocks;
  std::optional<Snake> out_snake;
  Rows2d pre_conv_output, in_conv_output;
  BlockScratch scratch;
  int64_t scratch_elements = 0, out_rows = 0;
  size_t pre_conv_lap = 0, in_conv_lap = 0, output_lap = 0;
  Memory memory;
  int64_t position = 0;
};

CodecDecoder::State::State(std::shared_ptr<const ModelWeights> model, const CodecDecoderOptions& wanted)
    : weights(std::move(model)),
      config(read_config(weights->config, weights->name).decoder),
      max_frames(checked_frames(wanted.max_frames)),
      backend(wanted.parallel, wanted.max_isa, static_cast<uint32_t>(max_frames * product(config.upsampling_ratios))),
      linear_plans(backend),
      plans(backend) {
  const ModelContext context = {*weights, {wanted.fp32, true}, OMNI_DTYPE_F32, backend, linear_plans, plans};
  quantiser.emplace(config, context, max_frames, &clock);
  pre_conv_lap = clock.stage("pre_conv");
  pre_conv.emplace(
      make_conv(context, "decoder.pre_conv.conv", {config.codebook_dim, config.latent, kFirstTaps}, false, max_frames));
  pre_conv_input = {pre_conv->x_type(), config.codebook_dim, pre_conv->shape().history()};
  transformer.emplace(config, context, max_frames, &clock);
  int64_t rows = max_frames;
  for (size_t i = 0; i < config.upsampling_ratios.size(); ++i) {
    upsamples.emplace_back(context, static_cast<int64_t>(i), config.latent, config.upsampling_ratios[i], rows, &clock);
    rows *= config.upsampling_ratios[i];
  }
  in_conv_lap = clock.stage("in_conv");
  in_conv.emplace(make_conv(context, "decoder.decoder.0.conv", {config.latent, config.width, kTaps}, false, rows));
  in_conv_input = {in_conv->x_type(), config.latent, in_conv->shape().history()};
  out_rows = rows;
  make_blocks(context);

  Placement counted(nullptr);
  place(&counted);
  memory = Memory(counted.used());
  Placement placed(memory.data());
  place(&placed);
  backend.allocate();
  reset();
}

// Blocks run depth first: rows of one go through all that follow before its next rows are made.
void CodecDecoder::State::make_blocks(const ModelContext& context) {
  int64_t channels = config.width, rows = out_rows;
  blocks.reserve(config.upsample_rates.size());
  for (size_t i = 0; i < config.upsample_rates.size(); ++i) {
    const int64_t rate = config.upsample_rates[i], at_once = std::clamp<int64_t>(kBlockRows / rate, 1, rows);
    const UpsampleBlock::Shape shape = {static_cast<int64_t>(i) + 1, channels, channels / 2, rate, at_once};
    blocks.emplace_back(context, shape, &clock);
    scratch_elements = std::max(scratch_elements, blocks.back().scratch_elements());
    channels /= 2;
    rows = at_once * rate;
  }
  out_rows = rows;
  const auto index = static_cast<int64_t>(blocks.size()) + 1;
  output_lap = clock.stage("output");
  out_conv.emplace(
      make_conv(context, "decoder.decoder." + std::to_string(index + 1) + ".conv", {channels, 1, kTaps}, false, out_rows));
  out_conv_input = {out_conv->x_type(), channels, out_conv->shape().history()};
  out_snake.emplace(context, "decoder.decoder." + std::to_string(index), channels, out_conv->x_type());
}

void CodecDecoder::State::place(Placement* placement) {
  const int64_t upsampled = max_frames * product(config.upsampling_ratios);
  quantiser->place(placement);
  pre_conv_input.place(placement, max_frames);
  pre_conv_output = placement->rows(OMNI_DTYPE_F32, max_frames, config.latent);
  transformer->place(placement);
  for (ConvNextStage& stage : upsamples) stage.place(placement);
  in_conv_input.place(placement, upsampled);
  in_conv_output = placement->rows(OMNI_DTYPE_F32, upsampled, config.width);
  for (UpsampleBlock& block : blocks) block.place(placement);
  out_conv_input.place(placement, out_rows);
  scratch.inner = placement->rows(OMNI_DTYPE_F32, 1, scratch_elements);
  scratch.narrow = placement->rows(OMNI_DTYPE_BF16, 1, scratch_elements);
}

void CodecDecoder::State::reset() {
  pre_conv_input.reset();
  transformer->reset();
  for (const ConvNextStage& stage : upsamples) stage.reset();
  in_conv_input.reset();
  for (const UpsampleBlock& block : blocks) block.reset();
  out_conv_input.reset();
  position = 0;
}

CodecDecoder::State::Latent CodecDecoder::State::run_latent(std::span<const Frame> frames, Observer* observer) {
  const auto count = static_cast<uint32_t>(frames.size());
  clock.start();
  quantiser->run(frames, position, &clock, observer);

  cast_rows(quantiser->output(), count, pre_conv_input.fresh());
  pre_conv->run(count, pre_conv_input.first(), config.codebook_dim, pre_conv_output.at(0), config.latent);
  pre_conv_input.advance(count);
  observe_rows(observer, "pre_conv", position, count, config.latent, pre_conv_output);
  clock.lap(pre_conv_lap);

  transformer->run(pre_conv_output, count, position, &clock, observer);
  Rows2d x = transformer->output();
  int64_t rows = count, at = position;
  for (const ConvNextStage& stage : upsamples) {
    stage.run(x, static_cast<uint32_t>(rows), at, &clock, observer);
    x = stage.output();
    rows *= stage.ratio();
    at *= stage.ratio();
  }

  cast_rows(x, rows, in_conv_input.fresh());
  position += count;
  return {rows, at};
}

void CodecDecoder::State::run(std::span<const Frame> frames, float* samples, Observer* observer) {
  const auto [rows, at] = run_latent(frames, observer);
  in_conv->run(static_cast<uint32_t>(rows), in_conv_input.first(), config.latent, in_conv_output.at(0), config.width);
  in_conv_input.advance(rows);
  observe_rows(observer, "dec_in_conv", at, rows, config.width, in_conv_output);
  clock.lap(in_conv_lap);
  run_blocks(0, in_conv_output, rows, at, samples, observer);
}

// Whatever the blocks' histories held, after so many frames they hold what they would have held.
int64_t CodecDecoder::State::lookback_frames() const {
  int64_t rows = out_conv_input.history();
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) rows = block->looks_back(rows);
  const int64_t of_frame = product(config.upsampling_ratios);
  return (rows + of_frame - 1) / of_frame;
}

void CodecDecoder::State::check_stream(std::span<const Frame> frames) const {
  check_codes(frames, config.codebook_size, position);
  if (static_cast<int64_t>(frames.size()) > OMNI_ROPE_MOST_POSITIONS - position) {
    throw Error("codec: a stream of " + std::to_string(position) + " frames and " + std::to_string(frames.size()) +
                " more, the most is " + std::to_string(OMNI_ROPE_MOST_POSITIONS));
  }
}

// Returns where the samples of the next rows go.
float* CodecDecoder::State::run_blocks(size_t block, const Rows2d& x, int64_t rows, int64_t at, float* samples,
                                       Observer* observer) {
  if (block == blocks.size()) {
    run_output(x, static_cast<uint32_t>(rows), at, samples, observer);
    return samples + rows;
  }
  const UpsampleBlock& now = blocks[block];
  const int64_t most = now.shape().most_rows, rate = now.shape().rate;
  const int64_t parts = (rows + most - 1) / most;
  for (int64_t part = 0; part < parts; ++part) {  // as even as they can be
    const int64_t first = rows * part / parts, count = rows * (part + 1) / parts - first;
    const Rows2d in = {x.at(first), x.type, x.ld};
    now.run(in, static_cast<uint32_t>(count), at + first, scratch, &clock, observer);
    samples = run_blocks(block + 1, now.output(), count * rate, (at + first) * rate, samples, observer);
  }
  return samples;
}

void CodecDecoder::State::run_output(const Rows2d& x, uint32_t rows, int64_t at, float* samples, Observer* observer) {
  out_snake->run(rows, x, out_conv_input.fresh());
  out_conv->run(rows, out_conv_input.first(), out_conv->shape().inputs, samples, 1);
  out_conv_input.advance(rows);
  observe(observer, "wav_unclamped", at, rows, 1, OMNI_DTYPE_F32, samples, 1);
  clamp({samples, rows});
  observe(observer, "wav", at, rows, 1, OMNI_DTYPE_F32, samples, 1);
  clock.lap(output_lap);
}

uint64_t CodecDecoder::State::history_bytes() const {
  uint64_t bytes = pre_conv_input.bytes() + in_conv_input.bytes() + out_conv_input.bytes() + transformer->state_bytes();
  for (const ConvNextStage& stage : upsamples) bytes += stage.state_bytes();
  for (const UpsampleBlock& block : blocks) bytes += block.state_bytes();
  return bytes;
}

CodecDecoder::CodecDecoder(std::shared_ptr<const ModelWeights> weights, const CodecDecoderOptions& options)
    : state_(std::make_unique<State>(std::move(weights), options)) {}
CodecDecoder::~CodecDecoder() = default;
CodecDecoder::CodecDecoder(CodecDecoder&&) noexcept = default;

void CodecDecoder::reset() { state_->reset(); }
int64_t CodecDecoder::position() const { return state_->position; }

void CodecDecoder::decode(std::span<const Frame> frames, std::span<float> samples, Observer* observer) {
  State& state = *state_;
  const auto count = static_cast<int64_t>(frames.size());
  if (samples.size() / kFrameSamples != frames.size() || samples.size() % kFrameSamples != 0) {
    throw Error("codec: room for " + std::to_string(samples.size()) + " samples, not for " + std::to_string(count) + " frames of " +
                std::to_string(kFrameSamples));
  }
  state.check_stream(frames);
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(state.max_frames, count - done);
    state.run(frames.subspan(static_cast<size_t>(done), static_cast<size_t>(n)), samples.data() + done * kFrameSamples, observer);
    done += n;
  }
}

void CodecDecoder::pass(std::span<const Frame> frames) {
  State& state = *state_;
  state.check_stream(frames);
  const auto lookback = static_cast<size_t>(state.lookback_frames());
  const size_t silent = frames.size() - std::min(frames.size(), lookback);
  for (size_t done = 0; done < silent;) {
    const size_t n = std::min(static_cast<size_t>(state.max_frames), silent - done);
    const State::Latent latent = state.run_latent(frames.subspan(done, n), nullptr);
    state.in_conv_input.advance(latent.rows);
    done += n;
  }
  std::vector<float> unheard((frames.size() - silent) * kFrameSamples);
  decode(frames.subspan(silent), unheard);
}

uint64_t CodecDecoder::weight_bytes() const {
  const State& state = *state_;
  uint64_t bytes = state.quantiser->weight_bytes() + state.pre_conv->bytes() + state.transformer->weight_bytes() +
                   state.in_conv->bytes() + state.out_snake->bytes() + state.out_conv->bytes();
  for (const ConvNextStage& stage : state.upsamples) bytes += stage.weight_bytes();
  for (const UpsampleBlock& block : state.blocks) bytes += block.weight_bytes();
  return bytes;
}

uint64_t CodecDecoder::state_bytes() const { return state_->history_bytes(); }
uint64_t CodecDecoder::working_bytes() const {
  return state_->memory.size() + state_->backend.workspace.size() + state_->transformer->working_bytes();
}
std::vector<StageTime> CodecDecoder::stage_times() const { return state_->clock.times(); }
void CodecDecoder::clear_stage_times() { state_->clock.clear(); }

std::vector<std::string> CodecDecoder::describe() const {
  const State& state = *state_;
  std::vector<std::string> lines;
  state.quantiser->describe(&lines);
  lines.push_back(state.pre_conv->describe("first conv"));
  state.transformer->describe(&lines);
  for (const ConvNextStage& stage : state.upsamples) stage.describe(&lines);
  lines.push_back(state.in_conv->describe("input conv"));
  for (const UpsampleBlock& block : state.blocks) block.describe(&lines);
  lines.push_back(state.out_conv->describe("output conv"));
  return lines;
}

}  // namespace ref::tts
