// SPDX-License-Identifier: Apache-2.0
// Makes the library generate a kernel, so that its code can be shown.
#pragma once

#include <cstdint>

#include "omni/omni.h"
#include "tools/common/shapes.h"

namespace probe {

// Forces `row` in one call of its operation: a plan for `shape` and `m` rows, or for packing and dequantisation, whose code does
// not depend on the shape, a matrix of 64 x 64. Throws Failure when the library refuses or takes another row.
void generate(const omni_kernel_info& row, const tools::Shape& shape, uint32_t m);

}  // namespace probe
