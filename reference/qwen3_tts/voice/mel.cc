// SPDX-License-Identifier: Apache-2.0
// Tables in double by SLEEF's deterministic functions: the bits of libm's vary with the processor.
#include "reference/qwen3_tts/voice/mel.h"

#include <kiss_fftr.h>
#include <sleef.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <new>

#include "reference/qwen3_tts/config.h"

namespace ref::tts {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Linear up to 1 kHz, 15 mel; from there 27 mel for each factor of 6.4.
double hertz_of(double mel) {
  if (mel < 15) return mel * 200 / 3;
  return 1000 * Sleef_cinz_expd1_u10purec(Sleef_cinz_logd1_u10purec(6.4) / 27 * (mel - 15));
}
double mel_of(double hertz) {
  return 15 + Sleef_cinz_logd1_u10purec(hertz / 1000) / (Sleef_cinz_logd1_u10purec(6.4) / 27);  // from 1 kHz on
}

struct FftFree {
  void operator()(kiss_fftr_state* state) const { kiss_fftr_free(state); }
};

// The sample at `index`, mirrored at the ends without repeating them.
float reflected(std::span<const float> samples, int64_t index) {
  const auto last = static_cast<int64_t>(samples.size()) - 1;
  index = index < 0 ? -index : index;
  return samples[static_cast<size_t>(index > last ? 2 * last - index : index)];
}

}  // namespace

MelFrontEnd::MelFrontEnd(int64_t bands) {
  for (int64_t i = 0; i < kWindow; ++i) {
    const double angle = 2 * kPi * static_cast<double>(i) / static_cast<double>(kWindow);
    window_.push_back(static_cast<float>(0.5 - 0.5 * Sleef_cinz_cosd1_u10purec(angle)));
  }
  const double most = mel_of(static_cast<double>(kSampleRate) / 2), step = most / static_cast<double>(bands + 1);
  for (int64_t b = 0; b < bands; ++b) {
    const double low = hertz_of(step * static_cast<double>(b)), centre = hertz_of(step * static_cast<double>(b + 1)),
                 high = hertz_of(step * static_cast<double>(b + 2));
    Band band = {0, {}};
    for (int64_t bin = 0; bin < kBins; ++bin) {
      const double hertz = static_cast<double>(bin * kSampleRate) / static_cast<double>(kWindow);
      const double height = std::min((hertz - low) / (centre - low), (high - hertz) / (high - centre));
      if (height <= 0) continue;
      if (band.weights.empty()) band.first = bin;
      band.weights.push_back(static_cast<float>(height * 2 / (high - low)));
    }
    bands_.push_back(std::move(band));
  }
}

std::vector<float> MelFrontEnd::run(std::span<const float> samples) const {
  const std::unique_ptr<kiss_fftr_state, FftFree> fft(kiss_fftr_alloc(kWindow, 0, nullptr, nullptr));
  if (!fft) throw std::bad_alloc();
  const int64_t count = frames(static_cast<int64_t>(samples.size()));
  std::vector<float> mel;
  mel.reserve(static_cast<size_t>(count) * bands_.size());
  std::array<float, kWindow> frame;
  std::array<kiss_fft_cpx, kBins> spectrum;
  std::array<float, kBins> magnitude;
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t i = 0; i < kWindow; ++i) {
      frame[static_cast<size_t>(i)] = reflected(samples, t * kHop + i - kPadding) * window_[static_cast<size_t>(i)];
    }
    kiss_fftr(fft.get(), frame.data(), spectrum.data());
    for (size_t i = 0; i < spectrum.size(); ++i) {
      magnitude[i] = std::sqrt(spectrum[i].r * spectrum[i].r + spectrum[i].i * spectrum[i].i + 1e-9F);
    }
    for (const Band& band : bands_) {
      double sum = 0;
      for (size_t i = 0; i < band.weights.size(); ++i) {
        sum += static_cast<double>(band.weights[i]) * magnitude[static_cast<size_t>(band.first) + i];
      }
      mel.push_back(static_cast<float>(Sleef_cinz_logd1_u10purec(std::max(sum, 1e-5))));
    }
  }
  return mel;
}

}  // namespace ref::tts
