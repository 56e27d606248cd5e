// SPDX-License-Identifier: Apache-2.0
// The description of a cache of keys and values: sizes and checks.
#include <cinttypes>

#include "kernels/attention/attention_plan.h"
#include "kernels/format/checked.h"

namespace okl {
namespace {

constexpr uint32_t kMostKvHeads = 1U << 16;

omni_status check_shape(uint32_t type, uint32_t kv_heads, uint32_t head_dim, int64_t capacity, int64_t* bytes) {
  if (type != OMNI_DTYPE_BF16 && type != OMNI_DTYPE_F32 && type != OMNI_DTYPE_S8) {
    return fail(OMNI_ERR_TYPE, "type %u of a cache is neither bf16, f32 nor s8", type);
  }
  if (kv_heads < 1 || kv_heads > kMostKvHeads) {
    return fail(OMNI_ERR_SHAPE, "kv_heads %u is outside 1..%u", kv_heads, kMostKvHeads);
  }
  if (head_dim < 8 || head_dim > OMNI_ATTENTION_MOST_HEAD_DIM || head_dim % 8 != 0) {
    return fail(OMNI_ERR_SHAPE, "head_dim %u is no multiple of 8 in 8..%d", head_dim, OMNI_ATTENTION_MOST_HEAD_DIM);
  }
  if (capacity < kBlockKeys || capacity % kBlockKeys != 0) {
    return fail(OMNI_ERR_SHAPE, "capacity %" PRId64 " is no positive multiple of %d", capacity, OMNI_KV_BLOCK);
  }
  if (!checked_product({capacity / kBlockKeys, kv_heads, record_bytes(static_cast<uint16_t>(type), head_dim)}, bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "a cache of %" PRId64 " slots does not fit", capacity);
  }
  return OMNI_OK;
}

}  // namespace

omni_status check_cache(const omni_kv_cache* cache) {
  if (cache == nullptr) return fail(OMNI_ERR_NULL, "cache is NULL");
  if (cache->size < sizeof *cache)
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_kv_cache.size is %u, needs %zu", cache->size, sizeof *cache);
  int64_t bytes = 0;
  const omni_status status = check_shape(cache->type, cache->kv_heads, cache->head_dim, cache->capacity, &bytes);
  if (status != OMNI_OK) return status;
  if (cache->reserved != 0) return fail(OMNI_ERR_TYPE, "cache.reserved is %u, not 0", cache->reserved);
  if (cache->begin < 0 || cache->end < cache->begin || cache->end - cache->begin > cache->capacity) {
    return fail(OMNI_ERR_RANGE, "cache holds [%" PRId64 ", %" PRId64 ") in %" PRId64 " slots", cache->begin, cache->end,
                cache->capacity);
  }
  if (cache->data == nullptr) return fail(OMNI_ERR_NULL, "cache.data is NULL");
  if (reinterpret_cast<uintptr_t>(cache->data) % 64 != 0) return fail(OMNI_ERR_ALIGNMENT, "cache.data is not aligned to 64 bytes");
  if (cache->bytes < static_cast<size_t>(bytes)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "cache.bytes is %zu and %" PRId64 " are needed", cache->bytes, bytes);
  }
  return OMNI_OK;
}

}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_kv_cache_ring(int64_t window, int64_t most_rows, int64_t* capacity) {
  if (capacity == nullptr) return fail(OMNI_ERR_NULL, "capacity is NULL");
  if (window < 1) return fail(OMNI_ERR_SHAPE, "window %" PRId64 " is below 1", window);
  if (most_rows < 1) return fail(OMNI_ERR_SHAPE, "most_rows %" PRId64 " is below 1", most_rows);
  int64_t slots = 0;
  if (!checked_sum(window - 1, most_rows, &slots) || slots > INT64_MAX - kBlockKeys) {
    return fail(OMNI_ERR_OVERFLOW, "window %" PRId64 " and most_rows %" PRId64 " do not fit", window, most_rows);
  }
  *capacity = ceil_div(slots, kBlockKeys) * kBlockKeys;
  return succeed();
}

omni_status omni_kv_cache_size(omni_dtype type, uint32_t kv_heads, uint32_t head_dim, int64_t capacity, size_t* bytes) {
  if (bytes == nullptr) return fail(OMNI_ERR_NULL, "bytes is NULL");
  int64_t size = 0;
  const omni_status status = check_shape(static_cast<uint32_t>(type), kv_heads, head_dim, capacity, &size);
  if (status != OMNI_OK) return status;
  *bytes = static_cast<size_t>(size);
  return succeed();
}

omni_status omni_kv_cache_init(omni_kv_cache* cache, omni_dtype type, uint32_t kv_heads, uint32_t head_dim, int64_t capacity,
                               void* data, size_t bytes) {
  if (cache == nullptr) return fail(OMNI_ERR_NULL, "cache is NULL");
  const omni_kv_cache made = {sizeof made, static_cast<uint16_t>(type), 0, kv_heads, head_dim, capacity, 0, 0, data, bytes};
  if (const omni_status status = check_cache(&made); status != OMNI_OK) return status;
  *cache = made;
  return succeed();
}

}  // extern "C"
