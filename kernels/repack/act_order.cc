// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/act_order.h"

#include <memory>
#include <new>

#include "kernels/api/error.h"
#include "kernels/format/checked.h"

namespace okl {

omni_status sort_by_group(const int32_t* g_idx, int64_t k, int64_t group, size_t limit, int32_t* permutation) {
  const int64_t groups = ceil_div(k, group);
  if (k > INT32_MAX || static_cast<uint64_t>(groups) > limit / sizeof(int32_t)) {
    return fail(OMNI_ERR_OVERFLOW, "k = %lld is too large for a permutation", static_cast<long long>(k));
  }
  const std::unique_ptr<int32_t[]> next(new (std::nothrow) int32_t[static_cast<size_t>(groups)]());
  if (next == nullptr) return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for %lld groups", static_cast<long long>(groups));
  for (int64_t i = 0; i < k; ++i) {
    if (g_idx[i] < 0 || g_idx[i] >= groups) {
      return fail(OMNI_ERR_GROUP, "g_idx[%lld] is %d, with %lld groups", static_cast<long long>(i), g_idx[i],
                  static_cast<long long>(groups));
    }
    ++next[static_cast<size_t>(g_idx[i])];
  }
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t expected = g + 1 < groups ? group : k - g * group;
    if (next[static_cast<size_t>(g)] != expected) {
      return fail(OMNI_ERR_GROUP, "g_idx gives group %lld %d inputs and %lld are needed", static_cast<long long>(g),
                  next[static_cast<size_t>(g)], static_cast<long long>(expected));
    }
    next[static_cast<size_t>(g)] = static_cast<int32_t>(g * group);
  }
  for (int64_t i = 0; i < k; ++i) permutation[next[static_cast<size_t>(g_idx[i])]++] = static_cast<int32_t>(i);
  return OMNI_OK;
}

}  // namespace okl
