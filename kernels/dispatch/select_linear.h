// SPDX-License-Identifier: Apache-2.0
// Which row serves a linear query: a pure function, tested with mock machines on any host.
#pragma once

#include <string>
#include <string_view>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct LinearRequest {
  Op op = Op::kGemm;  // or kConv1d; kGemm also takes rows of kGemv where there is one row of x
  Numerics numerics = Numerics::kGroup;
  omni_dtype x_type = OMNI_DTYPE_BF16;
  omni_format weights = OMNI_FORMAT_TG4;
  bool many_rows = false;        // more than one row of x
  std::string_view kernel;       // a name to force, or ""
  bool kernel_optional = false;  // a forced name that cannot serve is passed over (OMNI_KERNEL), not an error
};

struct SelectionMachine {
  IsaMask isa = 0;
  uint32_t traits = 0;  // OMNI_TRAIT_*
  bool jit_allowed = true;
  std::string jit_reason{};   // why not
  std::string amx_refusal{};  // why the process may not use tiles that the processor has; "" when it may, or nobody has asked
};

struct Selection {
  const KernelRow* row = nullptr;  // nullptr: nothing can serve, and `reason` says why
  std::string reason;              // one line
};

Selection select_linear(const LinearRequest& request, const SelectionMachine& machine);

}  // namespace okl
