// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of the head norm and its kernels: some heads that lie together.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct HeadnormRow {
  void* x;              // [heads][head_dim], in place
  const float* weight;  // [head_dim]
  int64_t heads, head_dim;
  float eps;
};
using HeadnormRowFn = void (*)(const HeadnormRow*);

struct HeadnormKernel {
  HeadnormRowFn (*row_for)(uint16_t type);
};

}  // namespace okl
