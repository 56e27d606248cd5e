// SPDX-License-Identifier: Apache-2.0
// Scale and zero of a group of 4-bit weights: nearest, or searched for the least error.
#pragma once

#include "reference/pack/group_batch.h"

namespace ref {

// (max - min) / 15 over a range that includes 0, or absolute maximum / 7.5; rounded to bf16.
void nearest_scales(const GroupBatch& batch, Zeros zeros, GroupScales* out);

// Those of least error that a grid and its refinement find; never worse than nearest_scales() of the same zeros.
void search_scales(const GroupBatch& batch, Zeros zeros, GroupScales* out);

}  // namespace ref
