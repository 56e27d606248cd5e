// SPDX-License-Identifier: Apache-2.0
// Which kernel each operation would get for each known shape, and why: asked of the library, never computed here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "tools/common/shapes.h"

namespace probe {

struct Choice {
  std::string op;        // "linear", "pack", "dequant"
  std::string numerics;  // "group", "torch", "exact", "fast" or ""
  std::string x_type;    // "bf16", "f32" or ""
  tools::Shape shape;
  uint32_t m = 0;      // 0 where the operation has no rows
  uint32_t group = 0;  // inputs that share a scale
  std::string kernel;  // "" when nothing serves
  std::string code;    // "jit", "jit (double mapping)" or "compiled"
  std::string reason;  // why this kernel, or the error
};

// Every row of the registry, in its order.
std::vector<omni_kernel_info> list_kernels();

std::vector<Choice> list_choices();

// A plan for one question; throws Failure (Exit::kLibrary) with the library's line.
class Plan {
 public:
  Plan(const tools::Shape& shape, uint32_t m, omni_numerics numerics, omni_dtype x_type, const char* kernel,
       omni_format weights = OMNI_FORMAT_TG4);
  ~Plan() { omni_plan_destroy(plan_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  omni_plan_info info() const;

 private:
  omni_plan* plan_ = nullptr;
};

inline constexpr uint32_t kGroup = 128;  // of the known shapes, where K allows it

}  // namespace probe
