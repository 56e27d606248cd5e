// SPDX-License-Identifier: Apache-2.0
// Reference recordings: any usual file through libsndfile, mixed down and resampled by libsoxr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ref::audio {

struct Recording {
  std::vector<float> samples;         // mono
  std::vector<std::string> warnings;  // lines for the user: clipped, silent parts, cut to the longest
  int64_t source_rate = 0, source_channels = 0;
};

struct ReadOptions {
  int64_t rate = 24000;
  double least_seconds = 0.1, most_seconds = 600;  // shorter is an error, longer is cut with a warning
};

// Throws Error naming the file and what is wrong: not audio, no samples, too short, NaN or Inf, silent.
Recording read_recording(const std::filesystem::path& file, const ReadOptions& options);

// soxr HQ, as the reference implementation's loader has it.
std::vector<float> resample(std::span<const float> samples, int64_t from_rate, int64_t to_rate);

}  // namespace ref::audio
