// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/attentive_pool.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/qwen3_tts/voice/ecapa_block.h"

namespace ref::tts {
namespace {

constexpr char kPrefix[] = "speaker_encoder.asp.";

// Of a variance, which the rounding of a sum may have left below 0.
float deviation(double variance) { return static_cast<float>(std::sqrt(std::max(variance, 1e-12))); }

std::vector<float> deviations(int64_t rows, const TimeRows& x, const std::vector<float>& mean) {
  std::vector<double> sums(mean.size());
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = x.at(row);
    for (size_t c = 0; c < sums.size(); ++c) {
      const double away = static_cast<double>(values[c]) - static_cast<double>(mean[c]);
      sums[c] += away * away;
    }
  }
  std::vector<float> out;
  for (const double sum : sums) out.push_back(deviation(sum / static_cast<double>(rows)));
  return out;
}

}  // namespace

AttentivePool::AttentivePool(const SpeakerEncoderConfig& config, const ModelContext& context)
    : channels_(config.channels[4]),
      attention_(config.attention_channels),
      hidden_(context, std::string(kPrefix) + "tdnn", 3 * channels_, attention_, 1, 1),
      scores_(context, std::string(kPrefix) + "conv", attention_, channels_, 1, 1, Tdnn::kBare),
      tanh_(OMNI_ACTIVATION_TANH, attention_, context),
      exp_(OMNI_ACTIVATION_EXP, channels_, context) {}

std::vector<float> AttentivePool::attend(int64_t rows, const TimeRows& x) {
  const std::vector<float> mean = mean_over_time(rows, x, channels_), spread = deviations(rows, x, mean);
  const int64_t most = std::min(rows, Tdnn::kBlock);
  const size_t bytes = static_cast<size_t>(channels_) * sizeof(float);
  std::vector<float> beside(static_cast<size_t>(most * 3 * channels_)), hidden(static_cast<size_t>(rows * attention_));
  const TimeRows input = {beside.data(), 3 * channels_}, out = {hidden.data(), attention_};
  for (int64_t row = 0; row < most; ++row) {
    std::memcpy(input.columns(channels_).at(row), mean.data(), bytes);
    std::memcpy(input.columns(2 * channels_).at(row), spread.data(), bytes);
  }
  for (int64_t done = 0; done < rows; done += most) {
    const int64_t count = std::min(most, rows - done);
    for (int64_t row = 0; row < count; ++row) std::memcpy(input.at(row), x.at(done + row), bytes);
    const TimeRows here = {out.at(done), attention_};
    hidden_.run(count, input, here, true);
    tanh_.run(count, here.data, attention_, here.data, attention_);
  }
  return hidden;
}

std::vector<float> AttentivePool::run(int64_t rows, const TimeRows& x) {
  std::vector<float> hidden = attend(rows, x);
  const auto channels = static_cast<size_t>(channels_);
  const int64_t most = std::min(rows, Tdnn::kBlock);
  std::vector<float> scores(static_cast<size_t>(most) * channels), peak(channels, -std::numeric_limits<float>::infinity());
  const TimeRows block = {scores.data(), channels_};
  const auto each_block = [&](auto&& take) {
    for (int64_t done = 0; done < rows; done += most) {
      const int64_t count = std::min(most, rows - done);
      scores_.run(count, {hidden.data() + done * attention_, attention_}, block, false);
      take(done, count);
    }
  };
  each_block([&](int64_t, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      for (size_t c = 0; c < channels; ++c) peak[c] = std::max(peak[c], block.at(row)[c]);
    }
  });
  std::vector<double> weight(channels), first(channels), second(channels);
  each_block([&](int64_t done, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      for (size_t c = 0; c < channels; ++c) block.at(row)[c] -= peak[c];
    }
    exp_.run(count, block.data, channels_, block.data, channels_);
    for (int64_t row = 0; row < count; ++row) {
      const float *w = block.at(row), *values = x.at(done + row);
      for (size_t c = 0; c < channels; ++c) {
        const double value = values[c], part = static_cast<double>(w[c]) * value;
        weight[c] += static_cast<double>(w[c]);
        first[c] += part;
        second[c] += part * value;
      }
    }
  });
  std::vector<float> pooled(2 * channels);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = first[c] / weight[c];
    pooled[c] = static_cast<float>(mean);
    pooled[channels + c] = deviation(second[c] / weight[c] - mean * mean);
  }
  return pooled;
}

}  // namespace ref::tts
