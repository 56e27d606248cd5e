// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/source_scan.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ref {
namespace {

constexpr uint32_t kSmallest = 0x23800000;  // 2^-56 in fp32

bool is_small(uint32_t magnitude) { return magnitude != 0 && magnitude < kSmallest; }

// The loops have no branch, so that they are vectorised.
ValueScan scan_bf16(const std::byte* data, int64_t count) {
  uint32_t small = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, 2);
    const uint32_t magnitude = bits & 0x7FFFU;
    small |= static_cast<uint32_t>(magnitude - 1U < (kSmallest >> 16) - 1U);
  }
  return {true, small != 0};
}

// 11 bits of mantissa against 8: the three low ones must be zero; subnormals are m * 2^-24, whose leading 8 bits must hold m.
ValueScan scan_f16(const std::byte* data, int64_t count) {
  bool exact = true;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, 2);
    const uint32_t mantissa = bits & 0x3FFU, exponent = bits >> 10 & 31U;
    exact = exact && ((mantissa & 7U) == 0 || (exponent == 0 && mantissa < 256));
  }
  return {exact, false};
}

ValueScan scan_f32(const std::byte* data, int64_t count) {
  uint32_t low = 0;
  bool small = false;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, data + 4 * i, 4);
    low |= bits & 0xFFFFU;
    small |= is_small(bits & 0x7FFFFFFFU);
  }
  return {low == 0, small};
}

}  // namespace

ValueScan scan_values(const LinearSource& source) {
  const std::string_view type = source.dense->dtype();
  const std::span<const std::byte> bytes = source.dense->bytes();
  const size_t element = type == "F32" ? 4 : 2;
  ValueScan result;
  for (size_t at = 0; at < bytes.size(); at += kSliceBytes) {
    const auto slice = bytes.subspan(at, std::min<size_t>(kSliceBytes, bytes.size() - at));
    const auto count = static_cast<int64_t>(slice.size() / element);
    const ValueScan part = type == "F32"   ? scan_f32(slice.data(), count)
                           : type == "F16" ? scan_f16(slice.data(), count)
                                           : scan_bf16(slice.data(), count);
    result.bf16_exact = result.bf16_exact && part.bf16_exact;
    result.small = result.small || part.small;
    release_pages(slice);
  }
  return result;
}

void release_pages(const LinearSource& source) {
  for (const TensorView* view : {source.dense, source.codes, source.scales, source.zeros}) {
    if (view != nullptr) release_pages(view->bytes());
  }
}

}  // namespace ref
