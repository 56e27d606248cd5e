// SPDX-License-Identifier: Apache-2.0
// What every linear operation shares: the query's facts, the choice of registry rows, and how a run is cut into tasks. A family of
// kernels (tg4, exact, dense) derives from it and implements preparing and computing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/api/plan.h"
#include "kernels/dispatch/select_linear.h"

namespace okl {

// A checked query.
struct LinearFacts {
  omni_layout weights;
  Numerics numerics;
  omni_dtype x_type, y_type, residual_type;
  uint32_t epilogue;
  uint32_t max_m;
  uint32_t max_threads;  // never 0
  std::string kernel;    // a name to force, or ""
  std::string remark;    // what the reasons of the plan also say, or ""

  bool has(uint32_t epilogue_bit) const { return (epilogue & epilogue_bit) != 0; }
};

class LinearPlan : public omni_plan {
 public:
  static constexpr PlanKind kKind = PlanKind::kLinear;

  explicit LinearPlan(LinearFacts query) : omni_plan(kKind), facts(std::move(query)) {}

  // Chooses rows for one and for more rows of x and generates their code.
  omni_status make(const SelectionMachine& machine);
  void describe(omni_plan_info* out) const override;

  // Bytes of omni_workspace_size: the prepared rows, then the scratch of every task that omni_run may cut.
  size_t workspace_bytes(uint32_t m) const;
  // Prepares and computes everything on `parallel`.
  void run(const omni_linear_args& args, const omni_parallel& parallel) const;

  // --- what a family implements; arguments are checked -------------------------------------------------------------------------
  // Rows are prepared and computed in units, e.g. row tiles: how many there are for m rows.
  virtual uint32_t row_units(uint32_t m) const = 0;
  // Bytes of the prepared rows at the start of the workspace, a multiple of 64.
  virtual size_t prepared_bytes(uint32_t m) const = 0;
  // Bytes that one compute() call needs for itself, a multiple of 64.
  virtual size_t scratch_bytes(uint32_t m) const = 0;
  virtual void prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const = 0;
  // Rows of units [first_unit, last_unit) by channels [n0, n1): any split, on any thread.
  virtual void compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1,
                       void* scratch) const = 0;

  const LinearFacts facts;
  const std::string& not_runnable() const { return not_runnable_; }

 protected:
  // What a family refuses beyond the checks of every query.
  virtual omni_status check_facts() const { return OMNI_OK; }
  // What its kernels multiply: the activation type of their rows in the registry.
  virtual omni_dtype kernel_activation() const { return facts.x_type; }
  // Generates the code of `row`, which serves runs of one row (many == false) or of more. False: executable memory was refused.
  virtual bool adopt(const KernelRow& row, bool many) = 0;
  // Bytes of machine code.
  virtual size_t code_bytes() const = 0;

  const KernelRow& row_for(uint32_t m) const { return m == 1 ? *one_.row : *many_.row; }
  // What the plan may run on its way to a kernel: the cap of the query, and the processor where a profile is emulated.
  IsaMask allowed_isa() const { return allowed_isa_; }

 private:
  omni_status choose(const SelectionMachine& machine, bool many);
  int64_t most_tasks() const;

  Selection one_, many_;
  IsaMask allowed_isa_ = 0;
  std::string not_runnable_;  // why the hardware cannot run it (a profile was emulated), "" when it can
};

// "compiled", "jit" or "jit (double mapping)".
const char* code_state_text(const KernelRow& row);
// The machine under the cap `max_isa` (a tier name, NULL or ""), its traits, and whether code may be generated.
omni_status selection_machine(const char* max_isa, SelectionMachine* out);

// select_linear(), with permission for tiles asked for when a kernel that needs them is about to be chosen: refused, it chooses
// again without them, and the reason and the trace say why. An emulated profile asks nobody.
Selection select_with_permission(const LinearRequest& request, SelectionMachine machine);

// The family that computes a query, made but not yet chosen for; nullptr with *status set when there is none.
std::unique_ptr<LinearPlan> make_linear_plan(LinearFacts facts, omni_status* status);

}  // namespace okl
