// SPDX-License-Identifier: Apache-2.0
// The table entries of omni/rope.h.
#include <cmath>

#include "kernels/api/row_plan.h"
#include "kernels/rope/angles.h"
#include "omni/rope.h"

namespace okl {
namespace {

constexpr uint32_t kMostRot = 1U << 16;

omni_status check_range(const omni_rope_range* range, int64_t* bytes) {
  if (range == nullptr) return fail(OMNI_ERR_NULL, "range is NULL");
  if (range->size < sizeof *range) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_rope_range.size is %u, needs %zu", range->size, sizeof *range);
  }
  if (range->rot < 2 || range->rot % 2 != 0 || range->rot > kMostRot) {
    return fail(OMNI_ERR_SHAPE, "rot is %u, must be even and in 2..%u", range->rot, kMostRot);
  }
  if (!(range->theta > 1.0) || std::isinf(range->theta)) return fail(OMNI_ERR_RANGE, "theta is %g", range->theta);
  if (range->p0 < 0 || range->p1 < range->p0 || range->p1 > OMNI_ROPE_MOST_POSITIONS) {
    return fail(OMNI_ERR_RANGE, "positions [%lld, %lld) outside of [0, %lld)", static_cast<long long>(range->p0),
                static_cast<long long>(range->p1), static_cast<long long>(OMNI_ROPE_MOST_POSITIONS));
  }
  *bytes = (range->p1 - range->p0) * range->rot * 4;  // below 2^42
  return OMNI_OK;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_rope_table_size(const omni_rope_range* range, size_t* bytes) {
  if (bytes == nullptr) return fail(OMNI_ERR_NULL, "bytes is NULL");
  int64_t needed = 0;
  if (omni_status status = check_range(range, &needed); status != OMNI_OK) return status;
  *bytes = static_cast<size_t>(needed);
  return succeed();
}

omni_status omni_rope_table(const omni_rope_range* range, void* table, size_t bytes) {
  int64_t needed = 0;
  if (omni_status status = check_range(range, &needed); status != OMNI_OK) return status;
  if (needed == 0) return succeed();
  if (omni_status status = check_array("table", table, sizeof(float)); status != OMNI_OK) return status;
  if (bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "the table has %zu bytes, needs %lld", bytes, static_cast<long long>(needed));
  }
  auto* out = static_cast<float*>(table);
  const uint32_t rot = range->rot, half = rot / 2;
  const int64_t positions = range->p1 - range->p0;
  for (uint32_t j = 0; j < half; ++j) {
    const float frequency = rope_frequency(range->theta, j, rot);
    for (int64_t i = 0; i < positions; ++i) {
      const CosSin value = rope_cos_sin(static_cast<float>(range->p0 + i) * frequency);
      out[i * rot + j] = value.cos;
      out[i * rot + half + j] = value.sin;
    }
  }
  return succeed();
}

}  // extern "C"
