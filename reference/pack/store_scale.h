// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/pack/group_batch.h"
#include "reference/pack/quantiser.h"

namespace ref {

// Scale and zero of one row's group to their place.
inline void store_scale(const GroupScales& scales, int64_t lane, int64_t at, const QuantisedRows& out) {
  out.scales[at] = scales.scale[lane];
  if (out.offsets != nullptr) {
    out.offsets[at] = scales.offset[lane];
  } else {
    out.zeros[at] = static_cast<uint8_t>(scales.zero[lane]);
  }
}

}  // namespace ref
