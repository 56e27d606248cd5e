// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "reference/core/error.h"
#include "reference/qwen3_tts/voice/attentive_pool.h"
#include "reference/qwen3_tts/voice/ecapa_block.h"
#include "reference/qwen3_tts/voice/encoders.h"
#include "reference/qwen3_tts/voice/mel.h"

namespace ref::tts {
namespace {

// Rows mirror at the ends, so there must be more of them than any convolution reaches beyond.
int64_t least_frames(const SpeakerEncoderConfig& config) {
  int64_t least = 1;
  for (size_t i = 0; i < config.kernels.size(); ++i) least = std::max(least, (config.kernels[i] - 1) * config.dilations[i] / 2 + 1);
  return least;
}
int64_t least_samples(const SpeakerEncoderConfig& config) {
  const int64_t of_frames = MelFrontEnd::kWindow - 2 * MelFrontEnd::kPadding + (least_frames(config) - 1) * MelFrontEnd::kHop;
  return std::max(of_frames, MelFrontEnd::kPadding + 1);
}

class SpeakerEncoder {
 public:
  SpeakerEncoder(const SpeakerEncoderConfig& config, const ModelContext& context)
      : config_(config),
        first_(context, "speaker_encoder.blocks.0", config.mels, config.channels[0], config.kernels[0], config.dilations[0]),
        join_(context, "speaker_encoder.mfa", 3 * config.channels[0], config.channels[4], config.kernels[4], config.dilations[4]),
        pool_(config, context),
        last_(context, "speaker_encoder.fc", 2 * config.channels[4], config.dim, 1, 1, Tdnn::kBare) {
    for (size_t i = 1; i <= 3; ++i) blocks_.emplace_back(config, i, context);
  }

  std::vector<float> run(std::vector<float> mel, Observer* observer) {
    const int64_t rows = static_cast<int64_t>(mel.size()) / config_.mels, channels = config_.channels[0],
                  wide = config_.channels[4];
    std::vector<float> joined(static_cast<size_t>(rows * wide));
    const TimeRows all = {joined.data(), wide};  // wide is three times channels: a block's output each, side by side
    {
      std::vector<float> begin(static_cast<size_t>(rows * channels)), inner(begin.size());
      TimeRows x = {begin.data(), channels};
      first_.run(rows, {mel.data(), config_.mels}, x, true);
      see(observer, "block0", rows, channels, x);
      for (int64_t i = 0; i < 3; ++i) {
        const TimeRows y = all.columns(i * channels);
        blocks_[static_cast<size_t>(i)].run(rows, x, {inner.data(), channels}, y);
        see(observer, ("block" + std::to_string(i + 1)).c_str(), rows, channels, y);
        x = y;
      }
    }
    join(rows, all);
    see(observer, "mfa", rows, wide, all);
    std::vector<float> pooled = pool_.run(rows, all);
    see(observer, "asp", 1, 2 * wide, {pooled.data(), 2 * wide});
    std::vector<float> out(static_cast<size_t>(config_.dim));
    last_.run(1, {pooled.data(), 2 * wide}, {out.data(), config_.dim}, false);
    see(observer, "embedding", 1, config_.dim, {out.data(), config_.dim});
    return out;
  }

  static void see(Observer* observer, const char* name, int64_t rows, int64_t columns, const TimeRows& x) {
    observe(observer, name, 0, rows, columns, OMNI_DTYPE_F32, x.data, x.ld);
  }

 private:
  // In place where one tap allows it, a block of rows at a time.
  void join(int64_t rows, const TimeRows& all) {
    const int64_t wide = config_.channels[4], most = join_.padding() > 0 ? rows : std::min(rows, Tdnn::kBlock);
    std::vector<float> copy(static_cast<size_t>(most * wide));
    for (int64_t done = 0; done < rows; done += most) {
      const int64_t count = std::min(most, rows - done);
      std::memcpy(copy.data(), all.at(done), static_cast<size_t>(count * wide) * sizeof(float));
      join_.run(count, {copy.data(), wide}, {all.at(done), wide}, true);
    }
  }

  const SpeakerEncoderConfig& config_;
  Tdnn first_;
  std::vector<EcapaBlock> blocks_;
  Tdnn join_;
  AttentivePool pool_;
  Tdnn last_;
};

}  // namespace

std::vector<float> embed_speaker(const ModelWeights& weights, std::span<const float> samples, const EncoderOptions& options,
                                 Observer* observer) {
  const Config config = read_config(weights.config, weights.name);
  if (!config.speaker_encoder) throw Error(weights.name + ": has no speaker encoder, only Base models clone a voice");
  need_encoder(weights, "speaker_encoder.fc", "speaker encoder");
  const SpeakerEncoderConfig& speaker = *config.speaker_encoder;
  check_samples(weights, samples, least_samples(speaker));
  std::vector<float> mel = MelFrontEnd(speaker.mels).run(samples);
  SpeakerEncoder::see(observer, "mel", static_cast<int64_t>(mel.size()) / speaker.mels, speaker.mels, {mel.data(), speaker.mels});
  EncoderContext encoder(weights, options, 1);
  SpeakerEncoder network(speaker, encoder.context());
  encoder.backend().allocate();
  return network.run(std::move(mel), observer);
}

}  // namespace ref::tts
