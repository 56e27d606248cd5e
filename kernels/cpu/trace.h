// SPDX-License-Identifier: Apache-2.0
// One line per dispatch decision, generated kernel and fallback, for OMNI_VERBOSE=1 and omni_set_trace().
#pragma once

#include "omni/cpu.h"

namespace okl {

// One relaxed load: ask before building an expensive line.
bool trace_enabled() noexcept;
// Sends one line (no newline, cut at 511 bytes) to the callback, else to stderr. Calls are serialised; a trace from inside the
// callback is dropped. Does nothing when tracing is off.
[[gnu::format(printf, 1, 2)]] void trace(const char* format, ...) noexcept;

// For settings.cc: OMNI_VERBOSE's stderr lines, the one print that the library may do.
void set_trace_stderr(bool on) noexcept;
// NULL ends the callback (stderr serves again if OMNI_VERBOSE=1). After it returns, no call of the former callback is running.
// False from inside the callback, where that could never come true.
bool set_trace_callback(omni_trace_fn fn, void* context) noexcept;

}  // namespace okl
