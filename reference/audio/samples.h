// SPDX-License-Identifier: Apache-2.0
// Samples as a file has them. None of these can wrap: what is beyond full scale stays at it.
#pragma once

#include <cmath>
#include <cstdint>

namespace ref::audio {

// Whether clean() changes it for being too loud; NaN is not.
inline bool is_clipped(float sample) { return sample > 1.0F || sample < -1.0F; }

// Into [-1, 1]; NaN is silence.
inline float clean(float sample) {
  if (std::isnan(sample)) return 0.0F;
  return sample > 1.0F ? 1.0F : sample < -1.0F ? -1.0F : sample;
}

// Nearest, ties to even, of what clean() leaves; -1 is as far from 0 as 1.
inline int32_t to_integer(float sample, double full_scale) {
  return static_cast<int32_t>(std::lrint(static_cast<double>(clean(sample)) * full_scale));
}
inline int32_t to_int24(float sample) { return to_integer(sample, 8388607.0); }

}  // namespace ref::audio
