// SPDX-License-Identifier: Apache-2.0
// The C entries of omni/kernels.h that list the registry.
#include "kernels/api/error.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/dispatch/kernel.h"
#include "omni/kernels.h"

namespace okl {
namespace {

// The strings of a row are literals, so that data() ends with a NUL.
omni_kernel_info describe(const KernelRow& row) {
  return {sizeof(omni_kernel_info),
          row.required,
          row.name.data(),
          op_name(row.op).data(),
          numerics_name(row.numerics).data(),
          row.isa.data(),
          row.code == Code::kJit ? "jit" : "compiled",
          row.summary.data(),
          (row.required & ~current_machine().isa) == 0 ? 1 : 0};
}

}  // namespace
}  // namespace okl

extern "C" {

size_t omni_kernel_count(void) { return okl::registry().size(); }

omni_status omni_kernel_get(size_t index, omni_kernel_info* out) {
  if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
  if (out == nullptr) return okl::fail(OMNI_ERR_NULL, "out is NULL");
  if (out->size < sizeof *out) {
    return okl::fail(OMNI_ERR_STRUCT_SIZE, "out->size is %u, expected at least %zu", out->size, sizeof *out);
  }
  if (index >= okl::registry().size()) {
    return okl::fail(OMNI_ERR_RANGE, "index is %zu, the registry has %zu rows", index, okl::registry().size());
  }
  const uint32_t size = out->size;
  *out = okl::describe(okl::registry()[index]);
  out->size = size;
  return okl::succeed();
}

}  // extern "C"
