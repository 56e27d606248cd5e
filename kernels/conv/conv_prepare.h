// SPDX-License-Identifier: Apache-2.0
// Lays out all of K for output rows of a convolution whose rows have too few channels to be a chunk.
#pragma once

#include "kernels/conv/conv_plan.h"

namespace okl {

struct GatherArgs {
  DensePrepareArgs prepare;  // of K, in chunks; ldx counts elements
  int64_t inputs, dilation, stride;
};

// Output rows [first, last). Never allocates.
void gather_conv_rows(const GatherArgs& args, int64_t first, int64_t last);

}  // namespace okl
