// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/headgate/headgate_kernel.h"
#include "omni/headgate.h"
#include "omni/status.h"

namespace okl {

omni_status check_headgate_query(const omni_headgate_query& query);
// Of a checked query.
HeadgateConfig headgate_config(const omni_headgate_query& query);
// False when they do not fit 63 bits.
bool headgate_packed_bytes(const omni_headgate_query& query, int64_t* bytes);

}  // namespace okl
