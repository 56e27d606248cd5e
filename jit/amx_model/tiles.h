// SPDX-License-Identifier: Apache-2.0
// The architectural state of AMX tiles and what its instructions do to it (palette 1: eight tiles of 16 rows of 64 bytes).
// Source: Intel SDM volume 2, the pages of the instructions, and volume 1 chapter 18.
#pragma once

#include <cstddef>
#include <cstdint>

namespace okl::amx_model {

enum class Fault : uint8_t {
  kNone,
  kUndefined,  // #UD: Linux sends SIGILL
  kProtection  // #GP(0): Linux sends SIGSEGV with si_code SI_KERNEL and address 0
};

// One thread's tiles. An instruction that faults leaves them as they were. Memory operands must be mapped.
class Tiles {
 public:
  static constexpr int kCount = 8, kMaxRows = 16, kMaxRowBytes = 64, kConfigurationBytes = 64;

  Fault configure(const uint8_t* bytes);         // LDTILECFG
  void store_configuration(uint8_t* out) const;  // STTILECFG
  void release();                                // TILERELEASE
  Fault zero(int tile);
  Fault load(int tile, const uint8_t* first_row, int64_t stride);
  Fault store(int tile, uint8_t* first_row, int64_t stride);

  // TDPBSSD and its kin: dst += A * B in 32-bit integers that wrap; four neighbouring bytes are one step along K.
  Fault dot_int8(int dst, int a, int b, bool a_signed, bool b_signed);

  // TDPBF16PS as the SDM writes it: for each element of dst the products of the even and of the odd inputs go to two chains of FMA
  // from +0, k ascending; then the two are added, and that to dst. Every step rounds to nearest even with subnormal inputs and
  // results taken as zero, whatever MXCSR says. A NaN result is some quiet NaN: which one is not modelled. The SDM leaves the order
  // to the implementation in one of its notes, so nothing may be tested against these bits, only against an error bound.
  Fault dot_bf16(int dst, int a, int b);

  bool configured() const { return configured_; }
  // What a context switch of Linux does for a forked child: the configuration is inherited, the data is not.
  void clear_data();

 private:
  bool usable(int tile) const { return configured_ && rows_[tile] != 0; }
  Fault check_dot(int dst, int a, int b) const;

  bool configured_ = false;
  uint8_t start_row_ = 0;  // where a load or store that was interrupted goes on
  uint8_t rows_[kCount] = {};
  uint16_t row_bytes_[kCount] = {};
  uint8_t data_[kCount][kMaxRows][kMaxRowBytes] = {};
};

}  // namespace okl::amx_model
