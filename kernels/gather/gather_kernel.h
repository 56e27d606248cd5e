// SPDX-License-Identifier: Apache-2.0
// The contract between the gather driver and its kernels: one row of a table to bf16 or fp32.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

enum class TableKind : uint8_t { kTg4, kW8s, kW16, kW32, kPlainBf16, kPlainF32 };
inline constexpr int kTableKinds = 6;

struct GatherRow {
  const uint8_t* data;    // the row's first byte (tg4), dword (w8s, w16, w32) or element (plain)
  int64_t stride;         // packed: bytes from there to the next: an input of tg4 and w32, two of w16, four of w8s
  int shift;              // tg4: of the code in its byte, 0 or 4
  const uint8_t* scales;  // tg4: (scale, zero), w8s: scale, of the row in group 0
  int64_t scale_stride;   // bytes from there to the next group
  int64_t k, group;
  float multiplier;
  void* out;
};

using GatherFn = void (*)(const GatherRow*);

struct GatherKernel {
  GatherFn by_type[kTableKinds][2][2];  // [kind][scales are fp32][out is fp32]

  GatherFn function(TableKind kind, uint16_t scale_type, uint16_t out_type) const {
    return by_type[static_cast<int>(kind)][scale_type == OMNI_DTYPE_F32 ? 1 : 0][out_type == OMNI_DTYPE_F32 ? 1 : 0];
  }
};

}  // namespace okl
