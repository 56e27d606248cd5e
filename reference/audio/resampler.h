// SPDX-License-Identifier: Apache-2.0
// libsoxr, a block at a time: memory does not grow with the length of what comes in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct soxr;

namespace ref::audio {

class Resampler {
 public:
  // Quality HQ, one thread. Equal rates pass samples through.
  Resampler(int64_t from_rate, int64_t to_rate);

  void process(std::span<const float> samples, std::vector<float>* out);
  // What is still inside. The length at the new rate is rounded up, in double as the reference's loader does it (13671 samples at
  // 44.1 kHz, 7440 exactly, become 7441); it appends silence where libsoxr rounds down. `out`: of process(), as that left it.
  void finish(std::vector<float>* out);

 private:
  struct Destroyer {
    void operator()(soxr* handle) const;
  };

  int64_t from_rate_, to_rate_, taken_ = 0;
  std::unique_ptr<soxr, Destroyer> handle_;  // none: equal rates
};

}  // namespace ref::audio
