/* SPDX-License-Identifier: Apache-2.0 */
/* Register-only arithmetic: the rate at which operations can retire at all. Leaf functions, one file per ISA. */
#ifndef OMNI_BENCH_ARMS_PEAK_LOOPS_H
#define OMNI_BENCH_ARMS_PEAK_LOOPS_H

#include <cstdint>

namespace omnibench {

/// Runs `rounds` rounds of independent multiply-adds; returns a value that depends on all of them.
using PeakLoop = float (*)(int64_t rounds);

/// Operations (a multiply-add is two) of one round of each loop.
constexpr int64_t kPeakAvx2Flops = 10 * 8 * 2;
constexpr int64_t kPeakAvx512Flops = 24 * 16 * 2;
constexpr int64_t kPeakBf16Flops = 24 * 32 * 2;
constexpr int64_t kPeakVnniAvx512Ops = 24 * 64 * 2;
constexpr int64_t kPeakVnniAvx2Ops = 12 * 32 * 2;

float peak_fma_avx2(int64_t rounds);
float peak_fma_avx512(int64_t rounds);
float peak_bf16_avx512(int64_t rounds);
float peak_vnni_avx512(int64_t rounds);
float peak_vnni_avx2(int64_t rounds);

}  // namespace omnibench
#endif
