// SPDX-License-Identifier: Apache-2.0
// The C entries about generated code.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "jit/cache/code_cache.h"
#include "jit/memory/perf.h"
#include "kernels/api/error.h"
#include "kernels/cpu/settings.h"
#include "omni/cpu.h"
#include "omni/kernels.h"

using okl::fail;
using okl::succeed;

extern "C" {

omni_status omni_kernel_code(const char* kernel_name, void* buffer, size_t bytes, size_t* needed, uint64_t* address) {
  try {
    if (kernel_name == nullptr) return fail(OMNI_ERR_NULL, "kernel_name is NULL");
    if (buffer == nullptr && bytes > 0) return fail(OMNI_ERR_NULL, "buffer is NULL and bytes is %zu", bytes);
    const okl::jit::GeneratedCode code = okl::jit::find_by_name(kernel_name);
    if (code.entry == nullptr) return fail(OMNI_ERR_UNKNOWN_NAME, "kernel_name \"%.120s\" has no generated code", kernel_name);
    if (bytes > 0) std::memcpy(buffer, code.entry, std::min(bytes, code.bytes));
    if (needed != nullptr) *needed = code.bytes;
    if (address != nullptr) *address = reinterpret_cast<uintptr_t>(code.entry);
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "out of memory");
  }
}

omni_status omni_set_jit_profile(const char* outputs) {
  try {
    if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
    std::string error;
    if (!okl::jit::set_perf_modes(outputs == nullptr ? "" : outputs, &error)) {
      return fail(OMNI_ERR_UNKNOWN_NAME, "outputs: %s", error.c_str());
    }
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "out of memory");
  }
}

}  // extern "C"
