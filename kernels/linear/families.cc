// SPDX-License-Identifier: Apache-2.0
// Which family of kernels computes which combination of numerics class, weights and x.
#include <string>

#include "kernels/fast/fast_plan.h"
#include "kernels/format/format.h"
#include "kernels/gemm/dense_plan.h"
#include "kernels/gemm/exact_plan.h"
#include "kernels/gemv/tg4_plan.h"
#include "kernels/linear/linear_plan.h"

namespace okl {
namespace {

using Make = std::unique_ptr<LinearPlan> (*)(LinearFacts);

template <typename Plan>
std::unique_ptr<LinearPlan> make(LinearFacts facts) {
  return std::make_unique<Plan>(std::move(facts));
}

struct Family {
  Numerics numerics;
  omni_format weights;
  omni_dtype x_type;
  Make make;
};

constexpr Family families[] = {
    {Numerics::kGroup, OMNI_FORMAT_TG4, OMNI_DTYPE_BF16, &make<Tg4Plan>},
    {Numerics::kGroup, OMNI_FORMAT_W8S, OMNI_DTYPE_BF16, &make<DensePlan>},
    {Numerics::kTorch, OMNI_FORMAT_TG4, OMNI_DTYPE_BF16, &make<Tg4Plan>},
    {Numerics::kTorch, OMNI_FORMAT_TG4, OMNI_DTYPE_F32, &make<Tg4Plan>},
    {Numerics::kExact, OMNI_FORMAT_W4S, OMNI_DTYPE_BF16, &make<ExactPlan>},
    {Numerics::kExact, OMNI_FORMAT_W4S, OMNI_DTYPE_F32, &make<ExactPlan>},
    {Numerics::kExact, OMNI_FORMAT_W4S, OMNI_DTYPE_S8, &make<ExactPlan>},
    {Numerics::kExact, OMNI_FORMAT_W8S, OMNI_DTYPE_BF16, &make<ExactPlan>},
    {Numerics::kExact, OMNI_FORMAT_W8S, OMNI_DTYPE_F32, &make<ExactPlan>},
    {Numerics::kExact, OMNI_FORMAT_W8S, OMNI_DTYPE_S8, &make<ExactPlan>},
    {Numerics::kDense, OMNI_FORMAT_W16, OMNI_DTYPE_BF16, &make<DensePlan>},
    {Numerics::kDense, OMNI_FORMAT_W16, OMNI_DTYPE_F32, &make<DensePlan>},
    {Numerics::kDense, OMNI_FORMAT_W32, OMNI_DTYPE_BF16, &make<DensePlan>},
    {Numerics::kDense, OMNI_FORMAT_W32, OMNI_DTYPE_F32, &make<DensePlan>},
    {Numerics::kFast, OMNI_FORMAT_TG4, OMNI_DTYPE_BF16, &make<FastPlan>},
    {Numerics::kFast, OMNI_FORMAT_W16, OMNI_DTYPE_BF16, &make<FastPlan>},
};

std::string formats_of(Numerics numerics) {
  std::string text;
  omni_format last = OMNI_FORMAT_NONE;
  for (const Family& family : families) {
    if (family.numerics != numerics || family.weights == last) continue;
    last = family.weights;
    text += (text.empty() ? "" : " or ") + std::string(format_name(last));
  }
  return text;
}

}  // namespace

std::unique_ptr<LinearPlan> make_linear_plan(LinearFacts facts, omni_status* status) {
  const auto weights = static_cast<omni_format>(facts.weights.format);
  bool numerics_known = false, weights_known = false;
  for (const Family& family : families) {
    if (family.numerics != facts.numerics) continue;
    numerics_known = true;
    if (family.weights != weights) continue;
    weights_known = true;
    if (family.x_type == facts.x_type) return family.make(std::move(facts));
  }
  const auto numerics = static_cast<unsigned>(facts.numerics);
  const std::string format(format_name(weights));
  if (!numerics_known) {
    *status = fail(OMNI_ERR_TYPE, "numerics %u is unknown", numerics);
  } else if (!weights_known) {
    *status = fail(OMNI_ERR_LAYOUT, "weights are %s, but class %s takes %s: repack them first", format.c_str(),
                   numerics_name(facts.numerics).data(), formats_of(facts.numerics).c_str());
  } else {
    *status = fail(OMNI_ERR_TYPE, "x_type %u: class %s takes others with %s weights", static_cast<unsigned>(facts.x_type),
                   numerics_name(facts.numerics).data(), format.c_str());
  }
  return nullptr;
}

}  // namespace okl
