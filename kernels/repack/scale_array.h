// SPDX-License-Identifier: Apache-2.0
// One element of a scale array in every layout that has one: tg4 and PyTorch's formats keep (scale, zero) pairs, w4s a scale and
// perhaps an integer zero point, w8s a scale.
#pragma once

#include <cstdint>

#include "omni/layout.h"

namespace okl {

struct ScaleEntry {
  float scale;
  float zero;      // (8 - zero_point) * scale, one rounding; +0 when the zero point is 8
  int zero_point;  // -1: no integer is it
};

// The largest zero point that an importer can meet: 16 is GPTQ v1's stored 15.
inline constexpr int kMostZeroPoint = 16;

ScaleEntry entry_of_zero_point(float scale, int zero_point);
// zero_point is the one in 0..15 with zero == (8 - zero_point) * scale in fp32, if there is one.
ScaleEntry entry_of_zero(float scale, float zero);

// Why `layout` cannot hold an entry exactly.
enum class Obstacle : uint8_t { kNone, kBf16, kNoZeroPoint, kZerosFlag };
Obstacle obstacle(const omni_layout& layout, const ScaleEntry& entry);

// The entry of (group, channel), and writing one that there is no obstacle to. `data` is aligned to its element.
ScaleEntry load_entry(const omni_layout& layout, const void* data, int64_t group, int64_t channel);
void store_entry(const omni_layout& layout, void* data, int64_t group, int64_t channel, const ScaleEntry& entry);

// Fails with OMNI_ERR_INEXACT, naming the first (group, channel) whose entry `layout` cannot hold; `entry(group, channel)`.
template <typename Entry>
omni_status check_entries(const omni_layout& layout, const Entry& entry);

omni_status fail_entry(Obstacle why, int64_t group, int64_t channel, const ScaleEntry& entry);

template <typename Entry>
omni_status check_entries(const omni_layout& layout, const Entry& entry) {
  const int64_t groups = layout.k / layout.group + (layout.k % layout.group != 0 ? 1 : 0);
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t channel = 0; channel < layout.n; ++channel) {
      const ScaleEntry value = entry(group, channel);
      if (const Obstacle why = obstacle(layout, value); why != Obstacle::kNone) return fail_entry(why, group, channel, value);
    }
  }
  return OMNI_OK;
}

}  // namespace okl
