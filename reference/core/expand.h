// SPDX-License-Identifier: Apache-2.0
// Packed matrices in a wider form of the same values, for rows that the stored form does not take.
#pragma once

#include "reference/core/memory.h"
#include "reference/core/model_weights.h"

namespace ref {

// A matrix and the memory of what was made for it; parts that were kept still belong to the source.
struct ExpandedMatrix {
  Matrix matrix;
  Memory memory;
};

// tg4 with bf16 scales: the same codes with fp32 scales and zeros.
ExpandedMatrix widen_scales(const Matrix& tg4, const omni_parallel* parallel);
// w8s or w16 as w32. The transient is a slice of rows.
ExpandedMatrix expand_to_w32(const Matrix& matrix, const omni_parallel* parallel);

}  // namespace ref
