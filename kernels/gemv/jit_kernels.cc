// SPDX-License-Identifier: Apache-2.0
// The generated kernels as implementations of registry rows.
#include "jit/x64/gemv_group_tg4_avx512.h"
#include "jit/x64/group_tg4_avx2.h"
#include "jit/x64/group_tg4_avx512.h"
#include "jit/x64/panel_tg4_avx2.h"
#include "jit/x64/panel_tg4_avx512.h"
#include "jit/x64/torch_tg4_avx2.h"
#include "jit/x64/torch_tg4_avx512.h"
#include "kernels/gemv/panel_kernel.h"

namespace okl {
namespace {

template <typename Kernel>
constexpr LinearKernel generated(XForm form, const PanelKernel* panel = nullptr) {
  return {form, Kernel::kMaxRows, &jit::make_linear<Kernel>, panel};
}

LinearCode make_gemv_group_avx512f(const LinearConfig& config, std::string_view name) {
  if (jit::GemvGroupTg4Avx512::serves(config)) return jit::make_linear<jit::GemvGroupTg4Avx512>(config, name);
  return jit::make_linear<jit::GroupTg4Avx512Fma>(config, name);
}

template <typename Kernel>
constexpr PanelKernel panel(uint8_t from_rows) {
  return {Kernel::kMaxRows, from_rows, &jit::make_panel<Kernel>};
}

// A tile unpacks in its registers; a second one would unpack again. VDPBF16PS hides the look-ups of its six rows.
constexpr PanelKernel panel_avx512f = panel<jit::PanelTg4Avx512Fma>(jit::GroupTg4Avx512Fma::kMaxRows + 1);
constexpr PanelKernel panel_torch_avx512f = panel<jit::PanelTg4Avx512Fma>(jit::TorchTg4Avx512::kMaxRows + 1);
constexpr PanelKernel panel_avx2 = panel<jit::PanelTg4Avx2>(jit::GroupTg4Avx2::kMaxRows + 1);
constexpr PanelKernel panel_torch_avx2 = panel<jit::PanelTg4Avx2>(jit::TorchTg4Avx2::kMaxRows + 1);
constexpr PanelKernel panel_avx512bf16 = panel<jit::PanelTg4Avx512Bf16>(49);

}  // namespace

extern const LinearKernel gemv_group_avx512f, gemm_group_avx512f;
const LinearKernel gemm_group_avx512f = generated<jit::GroupTg4Avx512Fma>(XForm::kFloats, &panel_avx512f);
const LinearKernel gemv_group_avx512f = {XForm::kFloats, 1, &make_gemv_group_avx512f};
extern const LinearKernel linear_group_avx512bf16, linear_group_avx2, linear_torch_avx512f, linear_torch_avx2;
const LinearKernel linear_group_avx512bf16 = generated<jit::GroupTg4Avx512Bf16>(XForm::kPairs, &panel_avx512bf16);
const LinearKernel linear_group_avx2 = generated<jit::GroupTg4Avx2>(XForm::kFloats, &panel_avx2);
const LinearKernel linear_torch_avx512f = generated<jit::TorchTg4Avx512>(XForm::kFloats, &panel_torch_avx512f);
const LinearKernel linear_torch_avx2 = generated<jit::TorchTg4Avx2>(XForm::kFloats, &panel_torch_avx2);

}  // namespace okl
