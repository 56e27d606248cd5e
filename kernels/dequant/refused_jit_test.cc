// SPDX-License-Identifier: Apache-2.0
// Where executable memory is refused, the compiled twins pack and dequantise, with the same bits, and say so. Children only: the
// sandbox is for good, and nothing may have been generated before.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "jit/memory/sandbox_for_test.h"
#include "kernels/format/bf16.h"
#include "omni/omni.h"
#include "tests/support/reference_formats.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

constexpr int64_t kN = 130, kK = 200;

bool remark_names_a_twin() {
  const std::string remark = omni_last_error();
  return remark.find("executable memory is refused") != std::string::npos && remark.find("twin") < remark.find(" serves for ");
}

// 0 when both operations succeed through a twin with the right bytes.
int pack_and_dequantise(bool has_twin) {
  const omni_parallel serial = backwards(1);
  const Codes codes = Codes::synthetic(kN, kK, 1);
  const std::vector<uint8_t> expected = reference_pack(OMNI_FORMAT_TG4, codes);
  std::vector<uint8_t> packed(expected.size() + 64);
  uint8_t* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64);
  omni_repack_args pack = {};
  pack.size = sizeof pack;
  pack.source_format = OMNI_FORMAT_CODES_U8;
  pack.destination_format = OMNI_FORMAT_TG4;
  pack.n = kN, pack.k = kK;
  pack.source = codes.values.data();
  pack.source_bytes = codes.values.size();
  pack.destination = aligned;
  pack.destination_bytes = expected.size();
  pack.parallel = &serial;
  if (omni_repack(&pack) != OMNI_OK) return 1;
  if (has_twin && !remark_names_a_twin()) return 2;
  if (std::memcmp(aligned, expected.data(), expected.size()) != 0) return 3;

  omni_dequant_args dequant = {};
  dequant.size = sizeof dequant;
  dequant.out_type = OMNI_DTYPE_BF16;
  if (omni_layout_init(&dequant.layout, OMNI_FORMAT_TG4, kN, kK, 64, OMNI_DTYPE_BF16) != OMNI_OK) return 4;
  const std::vector<uint16_t> scales(4 * kN * 2, 0x3F80);  // scale and zero 1
  std::vector<uint16_t> out(kN * kK);
  dequant.codes = aligned;
  dequant.codes_bytes = expected.size();
  dequant.scales = scales.data();
  dequant.scales_bytes = scales.size() * 2;
  dequant.n1 = kN, dequant.k1 = kK;
  dequant.out = out.data();
  dequant.ld_out = kK;
  dequant.parallel = &serial;
  if (omni_dequantize(&dequant) != OMNI_OK) return 5;
  if (has_twin && !remark_names_a_twin()) return 6;
  for (int64_t i = 0; i < kN * kK; ++i) {
    if (bf16_to_float(out[static_cast<size_t>(i)]) != static_cast<float>(codes.values[static_cast<size_t>(i)] - 7)) return 7;
  }
  return 0;
}

TEST(RefusedJit, TwinsServe) {
  omni_machine machine = {};
  machine.size = sizeof machine;
  ASSERT_EQ(omni_get_machine(&machine), OMNI_OK);
  const bool has_twin = (machine.isa & OMNI_ISA_AVX2) != 0;
  const int status =
      status_of_child([&] { return enter_policy(Policy::kDenyAnyExec) ? pack_and_dequantise(has_twin) : kNoSandbox; });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoSandbox) GTEST_SKIP() << "no seccomp filter can be installed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace okl::test
