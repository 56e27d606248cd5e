// SPDX-License-Identifier: Apache-2.0
// How many frames the codec takes at once: a few at first, so that sound comes early, then what is fast.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ref::speak {

class ChunkSchedule {
 public:
  // The first call takes sizes[0] frames, and so on; the last size stays. Throws Error unless there are sizes, each 1..kMost.
  explicit ChunkSchedule(std::vector<int64_t> sizes);
  // "2,2,3,4". Throws Error naming the text.
  static ChunkSchedule parse(const std::string& text);

  int64_t next() const { return sizes_[at_]; }
  void advance() { at_ = at_ + 1 < sizes_.size() ? at_ + 1 : at_; }

  static constexpr int64_t kMost = 250;  // 20 s
  static constexpr size_t kMostSizes = 64;
  // While two frames are heard (160 ms), the next two can be made at a real-time factor below 1, and so on.
  static constexpr const char* kRamp = "2,2,3,4";

 private:
  std::vector<int64_t> sizes_;
  size_t at_ = 0;
};

}  // namespace ref::speak
