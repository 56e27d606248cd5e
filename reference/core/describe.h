// SPDX-License-Identifier: Apache-2.0
// What --info tells of the kernels that serve a model: one line for each kind of operation.
#pragma once

#include <string>
#include <vector>

#include "reference/core/linear.h"

namespace ref {

const char* row_type_name(omni_dtype type);
// "WHAT: KERNEL (REASON)".
std::string kernel_line(const std::string& what, const omni_plan* plan);
// "WHAT (bf16 rows) LAYOUT: KERNEL (REASON)".
std::string linear_line(const std::string& what, const Linear& part, omni_dtype rows);
// Unless it was said before, by another layer.
void add_line(std::vector<std::string>* lines, std::string line);

}  // namespace ref
