// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/level_meter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reference/core/error.h"

namespace ref::audio {
namespace {

constexpr float kSilence = 1e-4F;       // -80 dB: the noise of 14 bits
constexpr float kQuiet = 0.01F;         // -40 dB: half of it is soon noise
constexpr float kFullScale = 0.99995F;  // 32767 of 16 bits is above, 32766 below
constexpr float kUnscaled = 16.0F;      // +24 dB: integers in a float file, or damage
constexpr double kClippedShare = 0.001;
constexpr double kGapSeconds = 0.05, kGapShare = 0.5;
constexpr float kGapLevel = 0.01F;  // of the peak

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

void LevelMeter::see_channels(std::span<const float> interleaved) {
  for (size_t i = 0; i < interleaved.size(); ++i) {
    const float level = std::fabs(interleaved[i]);
    if (!std::isfinite(level)) {
      const int64_t frame = (values_ + static_cast<int64_t>(i)) / channels_;
      throw Error("sample " + std::to_string(frame) + " is " + (std::isnan(level) ? "NaN" : "infinite"));
    }
    peak_ = std::max(peak_, level);
    full_ += level >= kFullScale ? 1 : 0;
  }
  values_ += static_cast<int64_t>(interleaved.size());
}

void LevelMeter::see_mono(std::span<const float> samples) {
  if (samples.empty()) return;
  const auto [least, most] = std::ranges::minmax(samples);
  least_ = any_ ? std::min(least_, least) : least;
  most_ = any_ ? std::max(most_, most) : most;
  any_ = true;
}

void LevelMeter::check() const {
  if (peak_ > kUnscaled) throw Error("its samples reach " + digits(peak_) + " where full scale is 1");
  if (peak_ < kSilence) throw Error("is silent: its peak is " + digits(peak_));
  if (most_ - least_ >= kSilence) return;
  const float offset = std::max(std::fabs(least_), std::fabs(most_));
  if (offset < kSilence) throw Error("is silent once its " + std::to_string(channels_) + " channels are averaged");
  throw Error("is silent: nothing but a constant offset of " + digits(offset));
}

void LevelMeter::warn(std::vector<std::string>* warnings) const {
  const double share = static_cast<double>(full_) / static_cast<double>(values_);
  if (share >= kClippedShare) {
    warnings->push_back("is clipped: " + digits(100 * share) + " % of its samples are at full scale");
  } else if (peak_ > 1.0F) {
    warnings->push_back("goes beyond full scale: its peak is " + digits(peak_));
  }
  const float swing = (most_ - least_) / 2;
  if (swing < kQuiet) warnings->push_back("is very quiet: its peak is " + digits(swing) + " of full scale");
}

void warn_of_gaps(std::span<const float> samples, int64_t rate, std::vector<std::string>* warnings) {
  const auto [least, most] = std::ranges::minmax(samples);
  const float threshold = (most - least) * kGapLevel;
  const auto block = static_cast<size_t>(kGapSeconds * static_cast<double>(rate));
  size_t blocks = 0, silent = 0;
  for (size_t i = 0; i + block <= samples.size(); i += block) {
    const auto [low, high] = std::ranges::minmax(samples.subspan(i, block));
    silent += high - low < threshold ? 1 : 0;
    ++blocks;
  }
  const double share = blocks == 0 ? 0 : static_cast<double>(silent) / static_cast<double>(blocks);
  if (share > kGapShare) warnings->push_back(digits(100 * share) + " % of it is silence");
}

}  // namespace ref::audio
