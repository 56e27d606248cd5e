// SPDX-License-Identifier: Apache-2.0
// The C entries of omni/cpu.h.
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "kernels/api/error.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/profile.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/gemv/bf16_self_test.h"
#include "omni/cpu.h"

namespace {

using okl::fail;
using okl::succeed;

// omni_get_machine() answers whether AMX and VDPBF16PS may be used, so it is an occasion to ask the kernel and to test the
// instruction, unless a profile (or for AMX a cap) makes it moot.
omni_machine examined_machine() {
  if (okl::profile_is_set()) return okl::current_machine();
  okl::ensure_bf16_dot_tested();
  const omni_machine machine = okl::current_machine();
  if ((machine.isa & OMNI_ISA_AMX_TILE) == 0) return machine;
  okl::amx_permission();
  return okl::current_machine();
}

// Exceptions end at the C interface; std::bad_alloc is the only one that the code below lets out.
template <typename Body>
omni_status guarded(const Body& body) noexcept {
  try {
    if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
    return body();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "out of memory");
  }
}

}  // namespace

extern "C" {

omni_status omni_initialize(void) {
  return guarded([] { return succeed(); });
}

omni_status omni_get_machine(omni_machine* out) {
  return guarded([out] {
    if (out == nullptr) return fail(OMNI_ERR_NULL, "out is NULL");
    if (out->size < sizeof *out) {
      return fail(OMNI_ERR_STRUCT_SIZE, "out->size is %u, expected at least %zu", out->size, sizeof *out);
    }
    const uint32_t size = out->size;  // a caller with a later, longer struct keeps its own size
    *out = examined_machine();
    out->size = size;
    return succeed();
  });
}

omni_status omni_get_profile_json(char* text, size_t bytes, size_t* needed) {
  return guarded([=] {
    if (needed == nullptr) return fail(OMNI_ERR_NULL, "needed is NULL");
    if (text == nullptr && bytes != 0) return fail(OMNI_ERR_NULL, "text is NULL and bytes is %zu", bytes);
    const std::string json = okl::profile_to_json(examined_machine());
    const size_t size = json.size() + 1;
    if (bytes != 0 && bytes < size) return fail(OMNI_ERR_BUFFER_SIZE, "bytes is %zu, the profile needs %zu", bytes, size);
    *needed = size;
    if (bytes != 0) std::memcpy(text, json.c_str(), size);
    return succeed();
  });
}

omni_status omni_set_profile_json(const char* json) {
  return guarded([json] {
    if (json == nullptr) {
      okl::set_profile(nullptr);
      return succeed();
    }
    std::string error;
    const std::optional<omni_machine> machine = okl::profile_from_json(json, &error);
    if (!machine) return fail(OMNI_ERR_PROFILE, "profile: %s", error.c_str());
    okl::set_profile(&*machine);
    okl::trace("profile: %s", machine->name);
    return succeed();
  });
}

omni_status omni_set_max_isa(const char* tier) {
  return guarded([tier] {
    if (tier == nullptr || *tier == '\0') {
      okl::set_max_isa(okl::Settings().max_isa);
      return succeed();
    }
    const std::optional<okl::IsaMask> mask = okl::tier_mask(tier);
    if (!mask) return fail(OMNI_ERR_UNKNOWN_NAME, "tier \"%.80s\" is unknown", tier);
    okl::set_max_isa(*mask);
    return succeed();
  });
}

omni_status omni_set_kernel(const char* kernel_name) {
  return guarded([kernel_name] {
    const char* name = kernel_name == nullptr ? "" : kernel_name;
    if (*name != '\0' && okl::find_kernel(name) == nullptr) {
      return fail(OMNI_ERR_UNKNOWN_NAME, "kernel_name \"%.120s\" is no kernel of the registry", name);
    }
    okl::set_forced_kernel(name);
    return succeed();
  });
}

omni_status omni_set_trace(omni_trace_fn fn, void* context) {
  return guarded([=] {
    if (!okl::set_trace_callback(fn, context))
      return fail(OMNI_ERR_STATE, "omni_set_trace was called from inside the trace callback");
    return succeed();
  });
}

}  // extern "C"
