// SPDX-License-Identifier: Apache-2.0
// How loud a recording is, and whether there is anything in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ref::audio {

class LevelMeter {
 public:
  explicit LevelMeter(int64_t channels) : channels_(channels) {}

  // Frames as the file has them, before they are mixed down. Throws Error (without a file's name) for NaN and Inf.
  void see_channels(std::span<const float> interleaved);
  // The same, mixed down.
  void see_mono(std::span<const float> samples);

  // Throws Error (without a file's name) for silence, an offset without sound, and samples that are not scaled to 1.
  void check() const;
  // Lines: clipped, beyond full scale, very quiet.
  void warn(std::vector<std::string>* warnings) const;

 private:
  int64_t channels_;
  int64_t values_ = 0, full_ = 0;  // of all channels; those at full scale
  float peak_ = 0;                 // of all channels
  float least_ = 0, most_ = 0;     // mixed down
  bool any_ = false;
};

// Line about parts without speech in 24 kHz mono, or nothing.
void warn_of_gaps(std::span<const float> samples, int64_t rate, std::vector<std::string>* warnings);

}  // namespace ref::audio
