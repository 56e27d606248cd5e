// SPDX-License-Identifier: Apache-2.0
// The thread-local error line behind omni_last_error().
#pragma once

#include "omni/status.h"

namespace okl {

// Stores one line for omni_last_error() and returns `status`, so that checks read `return fail(OMNI_ERR_GROUP, "group %u ...", g)`.
// Lines are cut at 255 bytes.
[[gnu::format(printf, 2, 3)]] omni_status fail(omni_status status, const char* format, ...) noexcept;
// Clears the line: every entry that succeeds ends with it.
omni_status succeed() noexcept;
// Succeeds but leaves a remark for omni_last_error(), e.g. the reason for a fallback.
[[gnu::format(printf, 1, 2)]] omni_status succeed_with(const char* format, ...) noexcept;

}  // namespace okl
