// SPDX-License-Identifier: Apache-2.0
// Act-order: inputs sorted by their group, so that a group is contiguous again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omni/status.h"

namespace okl {

// permutation[i] = the input that position i holds: a stable sort of 0..k-1 by g_idx. Every group but the last must hold exactly
// `group` inputs, else OMNI_ERR_GROUP. Holds 4 bytes of heap for each group, at most `limit` bytes. Nothing is written on an error.
omni_status sort_by_group(const int32_t* g_idx, int64_t k, int64_t group, size_t limit, int32_t* permutation);

}  // namespace okl
