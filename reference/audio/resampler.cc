// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/resampler.h"

#include <soxr.h>

#include <array>
#include <cmath>
#include <string>

#include "reference/audio/reader.h"
#include "reference/core/error.h"

namespace ref::audio {
namespace {

void check(soxr_error_t error) {
  if (error != nullptr) throw Error(std::string("resampling: ") + error);
}

}  // namespace

void Resampler::Destroyer::operator()(soxr* handle) const { soxr_delete(handle); }

Resampler::Resampler(int64_t from_rate, int64_t to_rate) : from_rate_(from_rate), to_rate_(to_rate) {
  if (from_rate < 1 || to_rate < 1) {
    throw Error("resampling: cannot go from " + std::to_string(from_rate) + " to " + std::to_string(to_rate) + " Hz");
  }
  if (from_rate == to_rate) return;
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
  soxr_error_t error = nullptr;
  handle_.reset(soxr_create(static_cast<double>(from_rate), static_cast<double>(to_rate), 1, &error, &io, &quality, &runtime));
  check(error);
}

void Resampler::process(std::span<const float> samples, std::vector<float>* out) {
  if (!handle_) {
    out->insert(out->end(), samples.begin(), samples.end());
    return;
  }
  taken_ += static_cast<int64_t>(samples.size());
  std::array<float, 8192> made;
  while (!samples.empty()) {
    size_t taken = 0, count = 0;
    check(soxr_process(handle_.get(), samples.data(), samples.size(), &taken, made.data(), made.size(), &count));
    out->insert(out->end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count));
    if (taken == 0 && count == 0) throw Error("resampling: libsoxr stands still");
    samples = samples.subspan(taken);
  }
}

void Resampler::finish(std::vector<float>* out) {
  if (!handle_) return;
  std::array<float, 8192> made;
  size_t count = 0;
  do {
    check(soxr_process(handle_.get(), nullptr, 0, nullptr, made.data(), made.size(), &count));
    out->insert(out->end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count));
  } while (count > 0);
  const double ratio = static_cast<double>(to_rate_) / static_cast<double>(from_rate_);
  out->resize(static_cast<size_t>(std::ceil(static_cast<double>(taken_) * ratio)));
}

std::vector<float> resample(std::span<const float> samples, int64_t from_rate, int64_t to_rate) {
  Resampler resampler(from_rate, to_rate);
  std::vector<float> out;
  resampler.process(samples, &out);
  resampler.finish(&out);
  return out;
}

}  // namespace ref::audio
