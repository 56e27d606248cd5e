// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/scale_array.h"

#include <cmath>

#include "kernels/api/error.h"
#include "kernels/format/bf16.h"
#include "kernels/format/checked.h"

namespace okl {
namespace {

float load_real(const omni_layout& layout, const void* data, int64_t index) {
  return layout.scale_type == OMNI_DTYPE_F32 ? static_cast<const float*>(data)[index]
                                             : bf16_to_float(static_cast<const uint16_t*>(data)[index]);
}
void store_real(const omni_layout& layout, void* data, int64_t index, float value) {
  if (layout.scale_type == OMNI_DTYPE_F32) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<uint16_t*>(data)[index] = bf16_round_ieee(value);
  }
}

bool has_pairs(const omni_layout& layout) { return layout.format != OMNI_FORMAT_W4S && layout.format != OMNI_FORMAT_W8S; }
bool has_zero_points(const omni_layout& layout) { return (layout.flags & OMNI_LAYOUT_ZEROS) != 0; }

// Byte offset of the zero points.
int64_t zeros_offset(const omni_layout& layout) {
  return ceil_div(layout.k, int64_t{layout.group}) * layout.n * (layout.scale_type == OMNI_DTYPE_F32 ? 4 : 2);
}

// A NaN keeps being one, whatever its payload.
bool is_bf16(float value) { return std::isnan(value) || bf16_to_float(bf16_round_ieee(value)) == value; }

}  // namespace

ScaleEntry entry_of_zero_point(float scale, int zero_point) {
  // +0 also for a negative or infinite scale, where 0 * s would be something else.
  return {scale, zero_point == 8 ? 0.0F : static_cast<float>(8 - zero_point) * scale, zero_point};
}

ScaleEntry entry_of_zero(float scale, float zero) {
  if (zero == 0.0F) return {scale, zero, 8};
  if (std::isfinite(scale)) {
    for (int point = 0; point <= 15; ++point) {
      if (static_cast<float>(8 - point) * scale == zero) return {scale, zero, point};
    }
  }
  return {scale, zero, -1};
}

Obstacle obstacle(const omni_layout& layout, const ScaleEntry& entry) {
  const bool narrow = layout.scale_type == OMNI_DTYPE_BF16;
  if (narrow && (!is_bf16(entry.scale) || (has_pairs(layout) && !is_bf16(entry.zero)))) return Obstacle::kBf16;
  if (has_pairs(layout)) return Obstacle::kNone;
  if (entry.zero_point < 0 || entry.zero_point > kMostZeroPoint) return Obstacle::kNoZeroPoint;
  return has_zero_points(layout) || entry.zero_point == 8 ? Obstacle::kNone : Obstacle::kZerosFlag;
}

omni_status fail_entry(Obstacle why, int64_t group, int64_t channel, const ScaleEntry& entry) {
  const auto g = static_cast<long long>(group), c = static_cast<long long>(channel);
  if (why == Obstacle::kBf16) {
    return fail(OMNI_ERR_INEXACT, "scale or zero of group %lld, channel %lld is no bf16 number", g, c);
  }
  if (why == Obstacle::kNoZeroPoint) {
    return fail(OMNI_ERR_INEXACT, "zero of group %lld, channel %lld is no integer zero point of its scale", g, c);
  }
  return fail(OMNI_ERR_INEXACT, "zero point of group %lld, channel %lld is %d, and the layout has no OMNI_LAYOUT_ZEROS", g, c,
              entry.zero_point);
}

ScaleEntry load_entry(const omni_layout& layout, const void* data, int64_t group, int64_t channel) {
  const int64_t index = group * layout.n + channel;
  if (has_pairs(layout)) return entry_of_zero(load_real(layout, data, 2 * index), load_real(layout, data, 2 * index + 1));
  const int point = has_zero_points(layout) ? static_cast<const uint8_t*>(data)[zeros_offset(layout) + index] : 8;
  return entry_of_zero_point(load_real(layout, data, index), point);
}

void store_entry(const omni_layout& layout, void* data, int64_t group, int64_t channel, const ScaleEntry& entry) {
  const int64_t index = group * layout.n + channel;
  if (has_pairs(layout)) {
    store_real(layout, data, 2 * index, entry.scale);
    store_real(layout, data, 2 * index + 1, entry.zero);
    return;
  }
  store_real(layout, data, index, entry.scale);
  if (has_zero_points(layout)) static_cast<uint8_t*>(data)[zeros_offset(layout) + index] = static_cast<uint8_t>(entry.zero_point);
}

}  // namespace okl
