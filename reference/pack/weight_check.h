// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "omni/omni.h"

namespace ref {

// Throws Error naming row and column of the first weight that no quantiser can take: NaN, infinite, or beyond 1e15.
void check_weights(const float* w, int64_t rows, int64_t k, int64_t ld, const omni_parallel* parallel);

}  // namespace ref
