// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/amx.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>

#include "kernels/cpu/probe.h"

namespace okl {
namespace {

// From the kernel's asm/prctl.h; older headers lack them.
constexpr int kGetSupported = 0x1021, kGetPermitted = 0x1022, kRequest = 0x1023;
constexpr unsigned kTileData = 18;

constinit std::atomic<const AmxPermission*> requested{nullptr};
constinit std::mutex request_mutex;
constinit const CpuSource* replaced_source = nullptr;

std::string errno_text(int error) {
  switch (error) {  // strerror is not thread-safe, and these are all that Linux documents
    case EINVAL:
      return "EINVAL, errno 22: a kernel before 5.16 or without tile data";
    case EPERM:
      return "EPERM, errno 1: a policy forbids it";
    case ENOSPC:
      return "ENOSPC, errno 28: a thread's alternate signal stack is too small";
    case ENOSYS:
      return "ENOSYS, errno 38";
    default:
      return "errno " + std::to_string(error);
  }
}

}  // namespace

AmxPermission request_amx(const CpuSource& cpu) {
  if (std::string absence = amx_absence(cpu); !absence.empty()) return {false, std::move(absence)};
  uint64_t mask = 0;
  const uintptr_t address = reinterpret_cast<uintptr_t>(&mask);
  // A failing GET is no verdict (filters may deny the codes one by one); a GET that answers without the bit is.
  if (cpu.arch_prctl(cpu.context, kGetSupported, address) == 0 && (mask >> kTileData & 1) == 0) {
    return {false, "the kernel does not offer tile data (ARCH_GET_XCOMP_SUPP)"};
  }
  mask = 0;
  if (cpu.arch_prctl(cpu.context, kGetPermitted, address) == 0 && (mask >> kTileData & 1) != 0) return {true, ""};
  const int result = cpu.arch_prctl(cpu.context, kRequest, kTileData);
  if (result != 0) return {false, "ARCH_REQ_XCOMP_PERM refused (" + errno_text(-result) + ")"};
  return {true, ""};
}

const AmxPermission& amx_permission() {
  if (const AmxPermission* known = amx_permission_if_requested()) return *known;
  const std::lock_guard lock(request_mutex);
  if (const AmxPermission* known = amx_permission_if_requested()) return *known;
  // Never destroyed, as threads may still select while the process exits; one a process, more only when tests replace the source.
  static auto& answers = *new std::deque<AmxPermission>;
  const CpuSource& source = replaced_source != nullptr ? *replaced_source : hardware_cpu();
  answers.push_back(request_amx(source));
  requested.store(&answers.back(), std::memory_order_release);
  return answers.back();
}

const AmxPermission* amx_permission_if_requested() { return requested.load(std::memory_order_acquire); }

void set_amx_source(const CpuSource* cpu) {
  const std::lock_guard lock(request_mutex);
  replaced_source = cpu;
  requested.store(nullptr, std::memory_order_release);
}

}  // namespace okl
