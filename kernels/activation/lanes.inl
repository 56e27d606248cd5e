// SPDX-License-Identifier: Apache-2.0
// Sixteen fp32 lanes, the vocabulary that the element-wise and attention kernels are written in: one text of a kernel, compiled
// once per tier, gives the same bits on each of them, because every function here is one IEEE operation (or exact) whatever it
// compiles to.
//
// For leaf files (docs/adding-a-kernel.md): everything is local to the including file, and nothing of the standard library is used.
// Which implementation it is follows from the file's flags: AVX-512F/BW/DQ/VL (with AVX-512 BF16: VCVTNEPS2BF16 stores), AVX2+FMA,
// or loops over arrays with fmaf().
//
//   F32, U32, Mask       16 floats, 16 words of bits, 16 flags
//   fma(a, b, c)         a * b + c, rounded once
//   max(a, b), min(a, b) as MAXPS, MINPS: b when either is NaN
//   load_bf16_split      the even and the odd elements of 32: a shift and a mask, where 16 in order take a shuffle and a shift
//   store_bf16           as bf16_round_group() of format/bf16.h: subnormals become zeros, any NaN 0x7FC0
//   store_s8             the nearest integer, ties to even, of values in -128..127
//   max_halves(a, b)     of unsigned 16-bit halves: of bf16 bits without their signs
//   lookup(table, index) table[index mod 16]
#pragma once

#include <cstdint>

#define OMNI_LANE_FN [[gnu::always_inline]] inline

namespace okl {
namespace {

constexpr int kLanes = 16;
constexpr uint32_t kNanBits = 0x7FC00000;

}  // namespace
}  // namespace okl

#if defined(__AVX512F__)
#include "kernels/activation/lanes_avx512.inl"
#elif defined(__AVX2__)
#include "kernels/activation/lanes_avx2.inl"
#else
#include "kernels/activation/lanes_portable.inl"
#endif

namespace okl {
namespace {

OMNI_LANE_FN void load_bf16_split(const uint16_t* p, F32* even, F32* odd) { split_bf16(load_bits(p), even, odd); }
OMNI_LANE_FN void store_bf16_split(uint16_t* p, F32 even, F32 odd) { store_bits(p, pack_bf16(even, odd)); }
// To bf16 and back, of finite values; subnormals are kept.
OMNI_LANE_FN F32 round_finite_to_bf16(F32 x) {
  const U32 bits = as_bits(x), odd = shift_right<16>(bits) & splat_bits(1);
  return as_float((bits + odd + splat_bits(0x7FFF)) & splat_bits(0xFFFF0000));
}
OMNI_LANE_FN F32 splat_bits_float(uint32_t bits) { return as_float(splat_bits(bits)); }
OMNI_LANE_FN F32 abs(F32 x) { return as_float(as_bits(x) & splat_bits(0x7FFFFFFF)); }
// Any NaN becomes 0x7FC00000, as every fp32 store has it.
OMNI_LANE_FN F32 canonical(F32 x) { return select(unordered(x, x), splat_bits_float(kNanBits), x); }

}  // namespace
}  // namespace okl
