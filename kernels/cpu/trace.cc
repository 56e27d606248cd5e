// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trace.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace okl {
namespace {

constinit std::mutex sink_mutex;
omni_trace_fn callback = nullptr;
void* callback_context = nullptr;
bool to_stderr = false;
constinit std::atomic<bool> enabled{false};
thread_local bool inside = false;

void update_enabled() { enabled.store(callback != nullptr || to_stderr, std::memory_order_relaxed); }

}  // namespace

bool trace_enabled() noexcept { return enabled.load(std::memory_order_relaxed); }

void trace(const char* format, ...) noexcept {
  if (!trace_enabled() || inside) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(sink_mutex);
  inside = true;
  if (callback != nullptr) {
    callback(callback_context, line);
  } else if (to_stderr) {
    std::fprintf(stderr, "omni: %s\n", line);
  }
  inside = false;
}

void set_trace_stderr(bool on) noexcept {
  const std::lock_guard lock(sink_mutex);
  to_stderr = on;
  update_enabled();
}

bool set_trace_callback(omni_trace_fn fn, void* context) noexcept {
  if (inside) return false;
  const std::lock_guard lock(sink_mutex);
  callback = fn;
  callback_context = context;
  update_enabled();
  return true;
}

}  // namespace okl
