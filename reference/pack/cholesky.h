// SPDX-License-Identifier: Apache-2.0
// The triangular factor that GPTQ needs: H = T^T T with T lower triangular, which is Cholesky's from the last row to the first.
#pragma once

#include <cstdint>

#include "omni/omni.h"

namespace ref {

// In place: `h` is [k][k], symmetric and positive definite, of which the upper triangle is read; then T, with zeros above the
// diagonal. Blocked, so that almost all work is in matrix products. Throws Error when h is not positive definite.
void factorise_from_below(float* h, int64_t k, const omni_parallel* parallel);

}  // namespace ref
