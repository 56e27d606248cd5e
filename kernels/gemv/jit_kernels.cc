// SPDX-License-Identifier: Apache-2.0
// The generated kernels as implementations of registry rows.
#include "jit/x64/gemm_group_tg4_avx512.h"
#include "jit/x64/gemv_group_tg4_avx512.h"
#include "jit/x64/group_tg4_avx2.h"
#include "jit/x64/group_tg4_avx512.h"
#include "jit/x64/torch_tg4_avx2.h"
#include "jit/x64/torch_tg4_avx512.h"
#include "kernels/gemv/linear_kernel.h"

namespace okl {
namespace {

template <typename Kernel>
constexpr LinearKernel generated(XForm form) {
  return {form, Kernel::kMaxRows, &jit::make_linear<Kernel>};
}

LinearCode make_gemv_group_avx512f(const LinearConfig& config, std::string_view name) {
  if (jit::GemvGroupTg4Avx512::serves(config)) return jit::make_linear<jit::GemvGroupTg4Avx512>(config, name);
  return jit::make_linear<jit::GroupTg4Avx512Fma>(config, name);
}

// Up to six rows are one tile, and unpacking in registers is then free of the panel's stores.
LinearCode make_gemm_group_avx512f(const LinearConfig& config, std::string_view name) {
  if (config.rows > jit::GroupTg4Avx512Fma::kMaxRows) return jit::make_linear<jit::GemmGroupTg4Avx512>(config, name);
  return jit::make_linear<jit::GroupTg4Avx512Fma>(config, name);
}

}  // namespace

extern const LinearKernel gemv_group_avx512f, gemm_group_avx512f;
const LinearKernel gemm_group_avx512f = {XForm::kFloats, jit::GemmGroupTg4Avx512::kMaxRows, &make_gemm_group_avx512f};
const LinearKernel gemv_group_avx512f = {XForm::kFloats, 1, &make_gemv_group_avx512f};
extern const LinearKernel linear_group_avx512bf16, linear_group_avx2, linear_torch_avx512f, linear_torch_avx2;
const LinearKernel linear_group_avx512bf16 = generated<jit::GroupTg4Avx512Bf16>(XForm::kPairs);
const LinearKernel linear_group_avx2 = generated<jit::GroupTg4Avx2>(XForm::kFloats);
const LinearKernel linear_torch_avx512f = generated<jit::TorchTg4Avx512>(XForm::kFloats);
const LinearKernel linear_torch_avx2 = generated<jit::TorchTg4Avx2>(XForm::kFloats);

}  // namespace okl
