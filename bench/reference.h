// SPDX-License-Identifier: Apache-2.0
// What outputs must be. Two independent sources: the library's portable tier (for every bit of every channel that is compared) and
// this program's own scalar transcription of docs/numerics.md (which checks the portable tier itself on a few channels).
#ifndef OMNI_BENCH_REFERENCE_H
#define OMNI_BENCH_REFERENCE_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/arm.h"
#include "bench/operands.h"

namespace omnibench {

/// fp32 result of one output element of class group or torch, straight from the contract.
float scalar_gemv(const Generator& weights, omni_numerics numerics, const uint16_t* x, int64_t channel);
/// bf16 of w = (q - 8) * s + z.
uint16_t scalar_dequant(const Generator& weights, int64_t channel, int64_t input);

/// How far a foreign result may lie from the exact sum; each bound is derived in reference.cc and stated in the report.
enum class Tolerance {
  kGroupBits,        ///< the bits of class group
  kTorchBits,        ///< the bits of class torch
  kBf16Weights,      ///< weights rounded to bf16 before the product
  kInt8Activations,  ///< activations rounded to 8 bits, one scale a row
};

class Reference {
 public:
  /// Compares all channels when M*N*K is at most 2^27 products, else blocks of 64 spread over the matrix, the first and last
  /// included.
  explicit Reference(Operands& operands);
  /// Compares y, [M][N] of bf16 (or fp32 when `f32`). Throws naming the first element that differs.
  Verification compare_gemv(const void* y, bool f32, Tolerance tolerance);
  /// Compares packed codes / dequantised rows with the scalar formulas.
  Verification compare_pack(const uint8_t* packed);
  Verification compare_dequant(const uint16_t* out);
  [[nodiscard]] Operands& operands() { return operands_; }

 private:
  struct Expected {
    bool ready = false;
    std::vector<uint16_t> bits;  ///< [channel position][M]
  };
  const Expected& expected(omni_numerics numerics);
  void compare_bits(const void* y, bool f32, omni_numerics numerics);
  void compare_bound(const void* y, bool f32, Tolerance tolerance);
  [[nodiscard]] std::string coverage() const;

  Operands& operands_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  ///< channels [first, second)
  int64_t channels_ = 0;
  Expected expected_[2];
};

}  // namespace omnibench
#endif
