// SPDX-License-Identifier: Apache-2.0
#include "reference/core/describe.h"

#include <algorithm>

namespace ref {

const char* row_type_name(omni_dtype type) { return type == OMNI_DTYPE_F32 ? "fp32" : "bf16"; }

std::string kernel_line(const std::string& what, const omni_plan* plan) {
  omni_plan_info info = {};
  info.size = sizeof info;
  check(omni_plan_get_info(plan, &info), what.c_str());
  return what + ": " + info.kernel + " (" + info.reason + ")";
}

std::string linear_line(const std::string& what, const Linear& part, omni_dtype rows) {
  return what + " (" + row_type_name(rows) + " rows) " + part.describe();
}

void add_line(std::vector<std::string>* lines, std::string line) {
  if (std::ranges::find(*lines, line) == lines->end()) lines->push_back(std::move(line));
}

}  // namespace ref
