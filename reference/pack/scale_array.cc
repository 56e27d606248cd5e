// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/scale_array.h"

#include <cstring>
#include <string>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/pack/plan.h"

namespace ref {

ScaleArray::ScaleArray(const omni_layout& layout) : layout_(layout), groups_((layout.k + layout.group - 1) / layout.group) {
  size_t bytes = 0;
  check_omni(omni_scales_size(&layout, &bytes), "scales");
  bytes_.resize(bytes);
  const auto pairs = static_cast<size_t>(groups_ * layout.n);
  scale_bytes_ = (layout.flags & OMNI_LAYOUT_ZEROS) != 0 ? bytes - pairs : bytes;
}

void ScaleArray::put(size_t element, float value) {
  if (layout_.scale_type == OMNI_DTYPE_F32) {
    std::memcpy(bytes_.data() + 4 * element, &value, 4);
    return;
  }
  const uint16_t rounded = round_bf16(value);
  if (widen_bf16(rounded) != value) throw Error("the scale array holds " + std::to_string(value) + ", which is no bf16 number");
  std::memcpy(bytes_.data() + 2 * element, &rounded, 2);
}

void ScaleArray::store(int64_t n0, int64_t rows, const QuantisedRows& quantised) {
  const bool pairs = layout_.format == OMNI_FORMAT_TG4, zero_points = (layout_.flags & OMNI_LAYOUT_ZEROS) != 0;
  const auto offset = [&](size_t cell) {
    if (quantised.offsets != nullptr) return quantised.offsets[cell];
    // One rounding, as omni_pack_scales() has it; a symmetric group gets +0 also under a negative scale.
    return quantised.zeros[cell] == 8 ? 0.0F : static_cast<float>(8 - quantised.zeros[cell]) * quantised.scales[cell];
  };
  for (int64_t g = 0; g < groups_; ++g) {
    for (int64_t row = 0; row < rows; ++row) {
      const auto from = static_cast<size_t>(row * groups_ + g), to = static_cast<size_t>(g * layout_.n + n0 + row);
      if (pairs) {
        put(2 * to, quantised.scales[from]);
        put(2 * to + 1, offset(from));
      } else {
        put(to, quantised.scales[from]);
        if (zero_points) bytes_[scale_bytes_ + to] = static_cast<std::byte>(quantised.zeros[from]);
      }
    }
  }
}

void ScaleArray::store(int64_t n0, int64_t rows, const float* scales) {
  for (int64_t g = 0; g < groups_; ++g) {
    for (int64_t row = 0; row < rows; ++row) put(static_cast<size_t>(g * layout_.n + n0 + row), scales[row * groups_ + g]);
  }
}

}  // namespace ref
