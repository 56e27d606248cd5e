// SPDX-License-Identifier: Apache-2.0
// Calls of the library: a status becomes an Error, a plan is released by its owner.
#pragma once

#include <memory>
#include <string>

#include "omni/omni.h"
#include "reference/core/error.h"

namespace ref {

// Throws Error: `what` failed, and the line that the library has about it.
inline void check(omni_status status, const char* what) {
  if (status != OMNI_OK) throw Error(std::string(what) + ": " + omni_last_error());
}

struct PlanDestroyer {
  void operator()(omni_plan* plan) const { omni_plan_destroy(plan); }
};
using Plan = std::unique_ptr<omni_plan, PlanDestroyer>;

// Bytes of an element of rows and plain tensors.
inline int64_t element_bytes(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }

}  // namespace ref
