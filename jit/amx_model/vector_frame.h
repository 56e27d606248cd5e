// SPDX-License-Identifier: Apache-2.0
// XMM and YMM registers of interrupted code, as Linux keeps them in the frame of a signal.
#pragma once

#include <array>
#include <cstdint>

namespace okl::amx_model {

using VectorBytes = std::array<uint8_t, 32>;

class VectorFrame {
 public:
  // Asks the processor where the components stand. Call it before the first signal: a handler may not run static initialisers.
  static void prepare();

  // `fpregs` is ucontext_t::uc_mcontext.fpregs: an XSAVE area in the standard format, or FXSAVE alone where the kernel has no more.
  explicit VectorFrame(void* fpregs);

  // Whether the frame holds the upper halves. Without them VEX instructions cannot be modelled.
  bool has_ymm() const { return has_ymm_; }

  VectorBytes read(int reg) const;  // 0..15
  // As a VEX instruction writes: everything above `bytes` (16 or 32) becomes zero, the upper half of the ZMM register too.
  void write(int reg, const VectorBytes& value, int bytes);

 private:
  uint64_t saved_components() const;  // XSTATE_BV: a component whose bit is 0 is in its initial state, all zero

  uint8_t* area_;
  bool has_ymm_ = false, has_zmm_ = false;
};

}  // namespace okl::amx_model
