// SPDX-License-Identifier: Apache-2.0
#include "kernels/api/row_plan.h"

#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/gemv/bf16_self_test.h"

namespace okl {
namespace {

const KernelRow* best_row(Op op, IsaMask allowed) {
  for (const KernelRow& row : registry()) {
    if (row.op == op && (row.required & ~allowed) == 0) return &row;
  }
  return nullptr;
}

// The row called `name` if it can serve; else nullptr, and `why` says what is wrong.
const KernelRow* named_row(Op op, IsaMask allowed, const std::string& name, std::string* why) {
  const KernelRow* row = find_kernel(name);
  if (row == nullptr) {
    *why = "no kernel is named " + name;
  } else if (row->op != op) {
    *why = name + " does not compute this query";
  } else if (const IsaMask missing = row->required & ~allowed; missing != 0) {
    *why = name + " cannot run: it needs " + isa_to_text(missing);
  } else {
    return row;
  }
  return nullptr;
}

}  // namespace

omni_status RowPlan::choose(Op op, const char* kernel, const char* max_isa) {
  ensure_bf16_dot_tested();
  IsaMask allowed = current_machine().isa;
  if (max_isa != nullptr && max_isa[0] != '\0') {
    const std::optional<IsaMask> cap = tier_mask(max_isa);
    if (!cap) return fail(OMNI_ERR_UNKNOWN_NAME, "max_isa \"%.80s\" is no tier", max_isa);
    allowed &= *cap;
  }
  std::string remark;
  if (kernel != nullptr && kernel[0] != '\0') {
    if (find_kernel(kernel) == nullptr) return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%.80s\" is in no registry row", kernel);
    row = named_row(op, allowed, kernel, &remark);
    if (row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "%s", remark.c_str());
    reason = "forced by name";
  } else if (const std::string forced = settings().kernel; !forced.empty()) {
    row = named_row(op, allowed, forced, &remark);
    reason = "forced by name";
  }
  if (row == nullptr) {
    row = best_row(op, allowed);
    reason = "best row that runs here" + (remark.empty() ? remark : "; " + remark);
  }
  if (row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "no row of the registry serves this query");
  if (const IsaMask missing = row->required & ~hardware_isa(); missing != 0) {
    not_runnable = std::string(row->name) + " needs " + isa_to_text(missing) + ", which this processor lacks";
  }
  if (trace_enabled()) trace("dispatch: %s (%s)", row->name.data(), reason.c_str());
  return OMNI_OK;
}

void RowPlan::describe(omni_plan_info* out) const {
  out->isa_required = row->required;
  out->kernel = row->name.data();
  out->reason = reason.c_str();
  out->code = "compiled";
}

omni_status check_rows(const char* name, const void* data, uint16_t type, int64_t rows, int64_t width, int64_t ld) {
  if (ld < width) {
    return fail(OMNI_ERR_STRIDE, "the leading dimension of %s is %lld, below %lld", name, static_cast<long long>(ld),
                static_cast<long long>(width));
  }
  int64_t bytes = 0;
  if (!checked_product({rows, ld, static_cast<int64_t>(type_bytes(type))}, &bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "%s: %lld rows of %lld elements do not fit 63 bits", name, static_cast<long long>(rows),
                static_cast<long long>(ld));
  }
  return check_array(name, data, type_bytes(type));
}

omni_status check_array(const char* name, const void* data, size_t alignment) {
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (misaligned(data, alignment)) return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to %zu bytes", name, alignment);
  return OMNI_OK;
}

omni_status check_args(const RowPlan& plan, const void* args, uint32_t size, size_t expected) {
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (size < expected) return fail(OMNI_ERR_STRUCT_SIZE, "args->size is %u, needs %zu", size, expected);
  if (!plan.not_runnable.empty()) return fail(OMNI_ERR_NO_KERNEL, "%s", plan.not_runnable.c_str());
  return OMNI_OK;
}

}  // namespace okl
