// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/ecapa_block.h"

#include <cstring>

namespace ref::tts {
namespace {

std::string prefix_of(size_t index) { return "speaker_encoder.blocks." + std::to_string(index) + "."; }

}  // namespace

std::vector<float> mean_over_time(int64_t rows, const TimeRows& x, int64_t channels) {
  std::vector<double> sums(static_cast<size_t>(channels));
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x.at(row);
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(values[c]);
  }
  std::vector<float> mean;
  mean.reserve(sums.size());
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  return mean;
}

EcapaBlock::EcapaBlock(const SpeakerEncoderConfig& config, size_t index, const ModelContext& context)
    : channels_(config.channels[0]),
      part_(channels_ / config.res2net_scale),
      first_(context, prefix_of(index) + "tdnn1", channels_, channels_, 1, 1),
      second_(context, prefix_of(index) + "tdnn2", channels_, channels_, 1, 1),
      squeeze_(context, prefix_of(index) + "se_block.conv1", channels_, config.se_channels, 1, 1, Tdnn::kBare),
      expand_(context, prefix_of(index) + "se_block.conv2", config.se_channels, channels_, 1, 1, Tdnn::kBare),
      sigmoid_(OMNI_ACTIVATION_SIGMOID, channels_, context) {
  for (int64_t i = 0; i + 1 < config.res2net_scale; ++i) {
    parts_.emplace_back(context, prefix_of(index) + "res2net_block.blocks." + std::to_string(i), part_, part_,
                        config.kernels[index], config.dilations[index]);
  }
}

// Part by part, each with what the one before it came to: the first stays as it is, the second has nothing to add.
void EcapaBlock::res2net(int64_t rows, const TimeRows& inner) {
  std::vector<float> sum(static_cast<size_t>(rows * part_));
  const TimeRows input = {sum.data(), part_};
  for (size_t i = 0; i < parts_.size(); ++i) {
    const TimeRows before = inner.columns(static_cast<int64_t>(i) * part_), here = before.columns(part_);
    for (int64_t row = 0; row < rows; ++row) {
      float* out = input.at(row);
      std::memcpy(out, here.at(row), static_cast<size_t>(part_) * sizeof(float));
      if (i == 0) continue;
      const float* add = before.at(row);
      for (int64_t c = 0; c < part_; ++c) out[c] += add[c];
    }
    parts_[i].run(rows, input, here, true);
  }
}

void EcapaBlock::excite(int64_t rows, const TimeRows& x, const TimeRows& y) {
  std::vector<float> mean = mean_over_time(rows, y, channels_), squeezed(static_cast<size_t>(squeeze_.outputs()));
  squeeze_.run(1, {mean.data(), channels_}, {squeezed.data(), squeeze_.outputs()}, true);
  std::vector<float> scale(static_cast<size_t>(channels_));
  expand_.run(1, {squeezed.data(), squeeze_.outputs()}, {scale.data(), channels_}, false);
  sigmoid_.run(1, scale.data(), channels_, scale.data(), channels_);
  for (int64_t row = 0; row < rows; ++row) {
    float* out = y.at(row);
    const float* in = x.at(row);
    for (size_t c = 0; c < scale.size(); ++c) out[c] = out[c] * scale[c] + in[c];
  }
}

void EcapaBlock::run(int64_t rows, const TimeRows& x, const TimeRows& inner, const TimeRows& y) {
  first_.run(rows, x, inner, true);
  res2net(rows, inner);
  second_.run(rows, inner, y, true);
  excite(rows, x, y);
}

}  // namespace ref::tts
