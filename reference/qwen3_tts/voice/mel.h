// SPDX-License-Identifier: Apache-2.0
// The mel front end of the speaker encoder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ref::tts {

class MelFrontEnd {
 public:
  static constexpr int64_t kWindow = 1024, kHop = 256, kBins = kWindow / 2 + 1, kPadding = (kWindow - kHop) / 2;

  // Slaney's scale and normalisation, 0 to 12 kHz of 24 kHz.
  explicit MelFrontEnd(int64_t bands);

  // Of `samples`, which reflect at both ends and must be more than kPadding.
  static int64_t frames(int64_t samples) { return 1 + (samples + 2 * kPadding - kWindow) / kHop; }
  // [frames][bands]: ln(max(band of the magnitudes, 1e-5)).
  std::vector<float> run(std::span<const float> samples) const;

 private:
  struct Band {
    int64_t first;  // bin
    std::vector<float> weights;
  };

  std::vector<float> window_;  // Hann, periodic
  std::vector<Band> bands_;
};

}  // namespace ref::tts
