// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx512f -mavx512vnni. 24 chains in 32 registers.
#include <cstdint>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_vnni_avx512(int64_t rounds) {
  const uint32_t operand = 0x01010101;
  int32_t lane;
  // The whole loop is one statement: g++ 12 spills an array of accumulators to the stack in every round, and a store for each
  // product halves what this arm is to show.
  __asm__ volatile(
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
      ".endr\n\t"
      "vmovd %[operand], %%xmm15\n\t"
      "vpbroadcastd %%xmm15, %%zmm31\n"
      "1:\n\t"
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vpdpbusd %%zmm31, %%zmm31, %%zmm\\n\n\t"
      ".endr\n\t"
      "dec %[rounds]\n\t"
      "jnz 1b\n\t"
      "vmovd %%xmm0, %[lane]\n\t"
      "vzeroupper"
      : [rounds] "+r"(rounds), [lane] "=r"(lane)
      : [operand] "r"(operand)
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm31", "cc");
  return static_cast<float>(lane);
}

}  // namespace omnibench
