// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2. The VEX form of VPDPBUSD, for processors that have no AVX-512: only the assembler needs to know it.
#include <cstdint>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_vnni_avx2(int64_t rounds) {
  const uint32_t operand = 0x01010101;
  int32_t lane;
  // The whole loop is one statement: g++ 12 spills an array of accumulators to the stack in every round, and a store for each
  // product halves what this arm is to show.
  __asm__ volatile(
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "vpxor %%ymm\\n, %%ymm\\n, %%ymm\\n\n\t"
      ".endr\n\t"
      "vmovd %[operand], %%xmm15\n\t"
      "vpbroadcastd %%xmm15, %%ymm15\n"
      "1:\n\t"
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm\\n\n\t"
      ".endr\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b\n\t"
      "vmovd %%xmm0, %[lane]\n\t"
      "vzeroupper"
      : [rounds] "+r"(rounds), [lane] "=r"(lane)
      : [operand] "r"(operand)
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm15", "cc");
  return static_cast<float>(lane);
}

}  // namespace omnibench
