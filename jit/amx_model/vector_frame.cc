// SPDX-License-Identifier: Apache-2.0
#include "jit/amx_model/vector_frame.h"

#include <cpuid.h>

#include <cstring>

namespace okl::amx_model {
namespace {

// Linux, asm/sigcontext.h: the bytes that FXSAVE leaves to software say whether an XSAVE area follows.
constexpr int kMagicAt = 464, kComponentsAt = 472, kXmmAt = 160, kHeaderAt = 512;
constexpr uint32_t kMagic = 0x46505853;
constexpr uint64_t kSse = 1U << 1, kYmm = 1U << 2, kZmmHigh = 1U << 6;

// Where a component stands in the standard format: CPUID leaf 13.
uint32_t component_offset(uint32_t component) {
  uint32_t size = 0, offset = 0, c = 0, d = 0;
  __cpuid_count(13, component, size, offset, c, d);
  return offset;
}

uint32_t ymm_offset = 0, zmm_offset = 0;

}  // namespace

void VectorFrame::prepare() {
  ymm_offset = component_offset(2);
  zmm_offset = component_offset(6);
}

VectorFrame::VectorFrame(void* fpregs) : area_(static_cast<uint8_t*>(fpregs)) {
  uint32_t magic = 0;
  uint64_t components = 0;
  std::memcpy(&magic, area_ + kMagicAt, sizeof magic);
  std::memcpy(&components, area_ + kComponentsAt, sizeof components);
  has_ymm_ = magic == kMagic && (components & kYmm) != 0;
  has_zmm_ = has_ymm_ && (components & kZmmHigh) != 0;
}

uint64_t VectorFrame::saved_components() const {
  uint64_t saved = 0;
  std::memcpy(&saved, area_ + kHeaderAt, sizeof saved);
  return saved;
}

VectorBytes VectorFrame::read(int reg) const {
  VectorBytes value{};
  const uint64_t saved = saved_components();
  if ((saved & kSse) != 0) std::memcpy(value.data(), area_ + kXmmAt + 16 * reg, 16);
  if ((saved & kYmm) != 0) std::memcpy(value.data() + 16, area_ + ymm_offset + 16 * reg, 16);
  return value;
}

void VectorFrame::write(int reg, const VectorBytes& value, int bytes) {
  uint64_t saved = saved_components();
  // A component that leaves its initial state brings stale bytes of the other registers along: clear them first.
  if ((saved & kSse) == 0) std::memset(area_ + kXmmAt, 0, 16 * 16);
  if ((saved & kYmm) == 0) std::memset(area_ + ymm_offset, 0, 16 * 16);
  saved |= kSse | kYmm;
  std::memcpy(area_ + kHeaderAt, &saved, sizeof saved);
  std::memcpy(area_ + kXmmAt + 16 * reg, value.data(), 16);
  if (bytes == 32) {
    std::memcpy(area_ + ymm_offset + 16 * reg, value.data() + 16, 16);
  } else {
    std::memset(area_ + ymm_offset + 16 * reg, 0, 16);
  }
  if (has_zmm_ && (saved & kZmmHigh) != 0) std::memset(area_ + zmm_offset + 32 * reg, 0, 32);
}

}  // namespace okl::amx_model
