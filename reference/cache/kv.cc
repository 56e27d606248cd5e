// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/kv.h"

#include <algorithm>

namespace ref {
namespace {

// Caches begin on pages, so that a layer is not resident because its neighbour is.
constexpr size_t kPage = 4096;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

KvCaches::KvCaches(const CacheModel& model, const CacheRequest& request) {
  const auto kv_heads = static_cast<uint32_t>(model.kv_heads), head_dim = static_cast<uint32_t>(model.head_dim);
  std::vector<int64_t> slots;
  std::vector<size_t> offsets;
  size_t total = 0;
  for (const int64_t window : model.windows) {
    windows_.push_back(window);
    slots.push_back(cache_slots(window, request));
    size_t bytes = 0;
    check(omni_kv_cache_size(request.type, kv_heads, head_dim, slots.back(), &bytes), "KV cache");
    offsets.push_back(total);
    total += whole_pages(bytes);
    bytes_ += bytes;
  }
  const uint64_t element = static_cast<uint64_t>(element_bytes(request.type));
  position_bytes_ = static_cast<uint64_t>(model.kv_heads) * 2 *
                    (static_cast<uint64_t>(model.head_dim) * element + (request.type == OMNI_DTYPE_S8 ? sizeof(float) : 0));
  memory_ = Memory(total);
  offsets.push_back(total);
  caches_.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    check(omni_kv_cache_init(&caches_[i], request.type, kv_heads, head_dim, slots[i], memory_.data() + offsets[i],
                             offsets[i + 1] - offsets[i]),
          "KV cache");
  }
}

void KvCaches::reset() {
  for (omni_kv_cache& cache : caches_) cache.begin = cache.end = 0;
}

bool KvCaches::rewind(int64_t position) {
  if (position == 0) {  // sees nothing before it
    reset();
    return true;
  }
  for (size_t i = 0; i < caches_.size(); ++i) {
    const int64_t first_seen = windows_[i] == 0 ? 0 : std::max<int64_t>(0, position - windows_[i] + 1);
    if (position > caches_[i].end) return false;
    if (first_seen < position && first_seen < caches_[i].begin) return false;
  }
  for (omni_kv_cache& cache : caches_) {
    cache.begin = std::min(cache.begin, position);  // above only where a window of one sees nothing that is held
    cache.end = position;
  }
  return true;
}

uint64_t KvCaches::bytes_read_at(int64_t position) const {
  uint64_t positions = 0;
  for (const int64_t window : windows_)
    positions += static_cast<uint64_t>(window == 0 ? position + 1 : std::min(position + 1, window));
  return positions * position_bytes_;
}

}  // namespace ref
