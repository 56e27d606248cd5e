// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch/select_linear.h"

namespace okl {
namespace {

bool computes(const KernelRow& row, const LinearRequest& request) {
  const bool op_fits = row.op == request.op || (row.op == Op::kGemv && request.op == Op::kGemm && !request.many_rows);
  return op_fits && row.numerics == request.numerics && row.activation == request.x_type && row.weights == request.weights;
}

std::string amx_remark(const SelectionMachine& machine) {
  return machine.amx_refusal.empty() ? "" : "; AMX is not available: " + machine.amx_refusal;
}

// Why a row that computes the request cannot run here; "" when it can.
std::string obstacle(const KernelRow& row, const SelectionMachine& machine) {
  if (const IsaMask missing = row.required & ~machine.isa; missing != 0) {
    return "it needs " + isa_to_text(missing) + ((missing & kIsaAmxBits) != 0 ? amx_remark(machine) : "");
  }
  if (row.code == Code::kJit && !machine.jit_allowed) return "executable memory is refused (" + machine.jit_reason + ")";
  return {};
}

// Where VDPBF16PS runs at half the FMA rate, FMA kernels win for any number of rows: on two cores of Emerald Rapids 13312x2048
// takes 600 against 510 us for one row and 6250 against 3350 us for 16 (best times).
bool too_slow(const KernelRow& row, const SelectionMachine& machine) {
  return (machine.traits & OMNI_TRAIT_SLOW_BF16_DOT) != 0 && (row.required & OMNI_ISA_AVX512BF16) != 0;
}

Selection select_forced(const LinearRequest& request, const SelectionMachine& machine) {
  const KernelRow* row = find_kernel(request.kernel);
  const std::string name(request.kernel);
  if (row == nullptr) return {nullptr, "no kernel is named " + name};
  if (!computes(*row, request)) return {nullptr, name + " does not compute this query"};
  if (std::string why = obstacle(*row, machine); !why.empty()) return {nullptr, name + " cannot run: " + why};
  return {row, "forced by name"};
}

}  // namespace

Selection select_linear(const LinearRequest& request, const SelectionMachine& machine) {
  std::string remarks;
  if (!request.kernel.empty()) {
    Selection forced = select_forced(request, machine);
    if (forced.row != nullptr || !request.kernel_optional) return forced;
    remarks = "; " + forced.reason;
  }
  const KernelRow* passed_over = nullptr;
  for (const KernelRow& row : registry()) {
    if (!computes(row, request)) continue;
    if (std::string why = obstacle(row, machine); !why.empty()) {
      if (row.code == Code::kJit && !machine.jit_allowed && (row.required & ~machine.isa) == 0 &&
          remarks.find(why) == remarks.npos) {
        remarks += "; " + why;
      }
      if ((row.required & ~machine.isa & kIsaAmxBits) != 0 && remarks.find(machine.amx_refusal) == remarks.npos) {
        remarks += amx_remark(machine);
      }
      continue;
    }
    if (too_slow(row, machine)) {
      passed_over = &row;
      continue;
    }
    std::string reason = "best row that runs here";
    if (passed_over != nullptr) reason = "VDPBF16PS runs at half the FMA rate on this processor";
    return {&row, reason + remarks};
  }
  return {nullptr, "no row of the registry serves this query" + remarks};
}

}  // namespace okl
