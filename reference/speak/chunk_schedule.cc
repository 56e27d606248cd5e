// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/chunk_schedule.h"

#include <charconv>

#include "reference/core/error.h"

namespace ref::speak {

ChunkSchedule::ChunkSchedule(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
  if (sizes_.empty() || sizes_.size() > kMostSizes) throw Error("a schedule has 1 to " + std::to_string(kMostSizes) + " sizes");
  for (const int64_t size : sizes_) {
    if (size < 1 || size > kMost) {
      throw Error("a chunk has 1 to " + std::to_string(kMost) + " frames, not " + std::to_string(size));
    }
  }
}

ChunkSchedule ChunkSchedule::parse(const std::string& text) {
  std::vector<int64_t> sizes;
  for (size_t begin = 0; begin <= text.size() && sizes.size() <= kMostSizes;) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (error != std::errc() || stop != text.data() + end) {
      throw Error("expected numbers of frames like 2,2,3,4, not \"" + text.substr(0, 80) + "\"");
    }
    sizes.push_back(size);
    begin = end + 1;
  }
  return ChunkSchedule(std::move(sizes));
}

}  // namespace ref::speak
