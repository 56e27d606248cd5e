// SPDX-License-Identifier: Apache-2.0
// The argument checks of the linear entries: each returns OMNI_OK or the status whose line names the argument and its value.
#pragma once

#include "kernels/linear/linear_plan.h"

namespace okl {

omni_status check_query(const omni_linear_query& query);

// Of omni_linear_args; m is at most max_m and neither m nor N is 0.
omni_status check_strides(const LinearPlan& plan, const omni_linear_args& args);
omni_status check_input(const LinearPlan& plan, const omni_linear_args& args);  // what prepare reads
omni_status check_workspace(const LinearPlan& plan, const omni_linear_args& args);
omni_status check_scratch(const LinearPlan& plan, const omni_linear_args& args);
omni_status check_weights(const LinearPlan& plan, const omni_linear_args& args);
omni_status check_output(const LinearPlan& plan, const omni_linear_args& args);

}  // namespace okl
