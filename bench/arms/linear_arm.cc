// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench/arms/arms.h"

namespace omnibench {
namespace {

omni_linear_query query_for(const Operands& operands, const OurChoice& choice) {
  const Case& c = operands.the_case();
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = static_cast<uint16_t>(c.numerics);
  query.x_type = OMNI_DTYPE_BF16;
  query.y_type = OMNI_DTYPE_BF16;
  query.max_m = static_cast<uint32_t>(c.m);
  query.weights = operands.layout();
  query.kernel = choice.kernel.empty() ? nullptr : choice.kernel.c_str();
  query.max_isa = choice.max_isa.empty() ? nullptr : choice.max_isa.c_str();
  return query;
}

// A plan for more than one row holds two kernels; these arms run all its rows at once.
const char* serving_kernel(const omni_plan_info& info) { return info.kernel_rows[0] == '\0' ? info.kernel : info.kernel_rows; }

class LinearArm final : public LoopArm {
 public:
  LinearArm(std::string name, Reference& reference, OurChoice choice)
      : reference_(reference), operands_(reference.operands()), choice_(std::move(choice)), plan_(nullptr, omni_plan_destroy) {
    info_.name = std::move(name);
    info_.bytes = bytes_model(operands_.the_case()).total();
    info_.flops = flops(operands_.the_case());
  }

  void prepare() override {
    const omni_linear_query query = query_for(operands_, choice_);
    omni_plan* plan = nullptr;
    check(omni_select(&query, &plan), "omni_select");
    plan_.reset(plan);
    omni_plan_info plan_info{};
    plan_info.size = sizeof plan_info;
    check(omni_plan_get_info(plan, &plan_info), "omni_plan_get_info");
    info_.detail = fmt::format("{} ({})", serving_kernel(plan_info), plan_info.code);

    const Case& c = operands_.the_case();
    size_t workspace_bytes = 0;
    check(omni_workspace_size(plan, query.max_m, &workspace_bytes), "omni_workspace_size");
    workspace_ = Block(workspace_bytes);
    args_ = omni_linear_args{};
    args_.size = sizeof args_;
    args_.m = query.max_m;
    args_.x = operands_.x();
    args_.ldx = c.shape.k;
    args_.codes_bytes = operands_.codes_bytes();
    args_.scales_bytes = operands_.scales_bytes();
    args_.y = operands_.y();
    args_.ldy = c.shape.n;
    args_.workspace = workspace_.data();
    args_.workspace_bytes = workspace_bytes;
    args_.parallel = operands_.pool().parallel();
  }

  Verification verify() override {
    const Case& c = operands_.the_case();
    std::fill(operands_.y(), operands_.y() + c.m * c.shape.n, uint16_t{0xffff});  // a channel that is not written shows
    call();
    return reference_.compare_gemv(operands_.y(), false,
                                   c.numerics == OMNI_NUMERICS_TORCH ? Tolerance::kTorchBits : Tolerance::kGroupBits);
  }

 protected:
  void call() override {
    const Copy& copy = operands_.next();
    args_.codes = copy.codes;
    args_.scales = copy.scales;
    const omni_status status = omni_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_run");
  }

 private:
  Reference& reference_;
  Operands& operands_;
  OurChoice choice_;
  std::unique_ptr<omni_plan, void (*)(omni_plan*)> plan_;
  omni_linear_args args_{};
  Block workspace_;
};

}  // namespace

std::unique_ptr<Arm> make_linear_arm(std::string name, Reference& reference, OurChoice choice) {
  return std::make_unique<LinearArm>(std::move(name), reference, std::move(choice));
}

std::string kernel_for(const Operands& operands, const OurChoice& choice) {
  const omni_linear_query query = query_for(operands, choice);
  omni_plan* plan = nullptr;
  if (omni_select(&query, &plan) != OMNI_OK) return "";
  omni_plan_info info{};
  info.size = sizeof info;
  std::string kernel = omni_plan_get_info(plan, &info) == OMNI_OK ? serving_kernel(info) : "";
  omni_plan_destroy(plan);
  return kernel;
}

}  // namespace omnibench
