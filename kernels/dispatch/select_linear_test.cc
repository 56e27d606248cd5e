// SPDX-License-Identifier: Apache-2.0
// Which kernel NAME is chosen, under mock machines: runs anywhere.
#include "kernels/dispatch/select_linear.h"

#include <gtest/gtest.h>

namespace okl {
namespace {

constexpr IsaMask kHaswell = kIsaAvx2Tier;
constexpr IsaMask kSkylakeX = kIsaAvx512Tier;
constexpr IsaMask kCooperLake = kIsaAvx512Tier | OMNI_ISA_AVX512BF16;  // no VBMI
constexpr IsaMask kZen4 = kIsaAvx512Bf16Tier;

std::string chosen(IsaMask isa, bool many, Numerics numerics = Numerics::kGroup, uint32_t traits = 0, bool jit = true,
                   omni_dtype x = OMNI_DTYPE_BF16) {
  LinearRequest request;
  request.numerics = numerics;
  request.x_type = x;
  request.many_rows = many;
  const Selection selection = select_linear(request, {isa, traits, jit, jit ? "" : "denied"});
  return selection.row == nullptr ? "" : std::string(selection.row->name);
}

TEST(SelectLinear, BestRowOfEachMachine) {
  EXPECT_EQ(chosen(0, false), "gemm_group_bf16_tg4_4x64_portable");
  EXPECT_EQ(chosen(kHaswell, false), "gemv_group_bf16_tg4_1x64_avx2");
  EXPECT_EQ(chosen(kHaswell, true), "gemm_group_bf16_tg4_6x16_avx2");
  EXPECT_EQ(chosen(kSkylakeX, false), "gemv_group_bf16_tg4_1x128_avx512f");
  EXPECT_EQ(chosen(kSkylakeX, true), "gemm_group_bf16_tg4_6x64_avx512f");
  EXPECT_EQ(chosen(kCooperLake, false), "gemv_group_bf16_tg4_1x128_avx512f");
  EXPECT_EQ(chosen(kZen4, false), "gemv_group_bf16_tg4_1x64_avx512bf16");
  EXPECT_EQ(chosen(kZen4, true), "gemm_group_bf16_tg4_6x64_avx512bf16");
}

TEST(SelectLinear, SlowBf16DotLosesToFma) {
  EXPECT_EQ(chosen(kZen4, false, Numerics::kGroup, OMNI_TRAIT_SLOW_BF16_DOT), "gemv_group_bf16_tg4_1x128_avx512f");
  EXPECT_EQ(chosen(kZen4, true, Numerics::kGroup, OMNI_TRAIT_SLOW_BF16_DOT), "gemm_group_bf16_tg4_6x64_avx512f");
}

TEST(SelectLinear, ClassTorch) {
  EXPECT_EQ(chosen(kZen4, false, Numerics::kTorch), "gemv_torch_bf16_tg4_1x64_avx512f");
  EXPECT_EQ(chosen(kZen4, true, Numerics::kTorch), "gemm_torch_bf16_tg4_6x64_avx512f");
  EXPECT_EQ(chosen(kHaswell, false, Numerics::kTorch, 0, true, OMNI_DTYPE_F32), "gemv_torch_f32_tg4_1x64_avx2");
  EXPECT_EQ(chosen(kZen4, false, Numerics::kGroup, 0, true, OMNI_DTYPE_F32), "") << "class group takes bf16 only";
}

TEST(SelectLinear, CompiledTwinsServeWithoutExecutableMemory) {
  EXPECT_EQ(chosen(kZen4, false, Numerics::kGroup, 0, false), "gemm_group_bf16_tg4_4x64_twinavx512");
  EXPECT_EQ(chosen(kHaswell, true, Numerics::kTorch, 0, false), "gemm_torch_bf16_tg4_4x64_twinavx2");
  LinearRequest request;
  const Selection selection = select_linear(request, {kZen4, 0, false, "denied by policy"});
  EXPECT_NE(selection.reason.find("denied by policy"), std::string::npos) << selection.reason;
}

TEST(SelectLinear, ForcedNames) {
  LinearRequest request;
  request.kernel = "gemm_group_bf16_tg4_4x64_portable";
  EXPECT_EQ(select_linear(request, {kZen4, 0, true, ""}).row->name, request.kernel);
  request.kernel = "gemv_group_bf16_tg4_1x64_avx512bf16";
  Selection refused = select_linear(request, {kHaswell, 0, true, ""});
  EXPECT_EQ(refused.row, nullptr);
  EXPECT_NE(refused.reason.find("avx512"), std::string::npos) << refused.reason;
  // From the environment a name that cannot serve is passed over, and the reason says so.
  request.kernel_optional = true;
  refused = select_linear(request, {kHaswell, 0, true, ""});
  EXPECT_EQ(refused.row->name, "gemv_group_bf16_tg4_1x64_avx2");
  EXPECT_NE(refused.reason.find("cannot run"), std::string::npos) << refused.reason;
}

// AMX int8 first for many rows of class exact; refused, the next tier and the reason why.
TEST(SelectLinear, AmxAndItsRefusal) {
  LinearRequest request;
  request.numerics = Numerics::kExact;
  request.x_type = OMNI_DTYPE_S8;
  request.weights = OMNI_FORMAT_W4S;
  request.many_rows = true;
  SelectionMachine machine{kIsaAmxInt8Tier | OMNI_ISA_AVX512VNNI, OMNI_TRAIT_SLOW_BF16_DOT, true, "", ""};
  EXPECT_EQ(select_linear(request, machine).row->name, "gemm_exact_s8_w4s_16x64_amxint8");
  machine.isa &= ~kIsaAmxBits;
  machine.amx_refusal = "EPERM, a policy forbids it";
  const Selection refused = select_linear(request, machine);
  EXPECT_EQ(refused.row->required & kIsaAmxBits, 0U) << refused.row->name;
  EXPECT_NE(refused.reason.find("AMX is not available: EPERM"), std::string::npos) << refused.reason;
  request.kernel = "gemm_exact_s8_w4s_16x64_amxint8";
  EXPECT_NE(select_linear(request, machine).reason.find("EPERM"), std::string::npos);
  request.numerics = Numerics::kFast;
  request.x_type = OMNI_DTYPE_BF16;
  request.weights = OMNI_FORMAT_TG4;
  request.kernel = {};
  EXPECT_EQ(select_linear(request, machine).row, nullptr) << "class fast has no other row";
  machine.isa |= kIsaAmxBf16Tier;
  EXPECT_EQ(select_linear(request, machine).row->name, "gemm_fast_bf16_tg4_16x64_amxbf16");
}

}  // namespace
}  // namespace okl
