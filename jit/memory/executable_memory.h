// SPDX-License-Identifier: Apache-2.0
// Executable memory that is never writable and executable at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace okl::jit {

enum class CodeState : uint8_t {
  kMapped,        // written while RW, then flipped to RX
  kDoubleMapped,  // mprotect(PROT_EXEC) is refused here: one memfd mapped RW and RX
  kRefused        // neither is allowed: compiled kernels must serve
};

// Whether this process may generate code, tried on first use with a stub that is really called. Later it changes in one case only:
// a sandbox entered since then refuses publish(), and the next state whose stub runs takes over. Thread-safe.
CodeState code_state();
// Why it is not kMapped: one line, "" when it is.
std::string code_state_reason();

// Copies position-independent code into executable memory for the life of the process, 64-byte aligned and with at least 16
// readable bytes before the entry (UBSan's function check reads them). Registers it with perf when asked (see perf.h).
// nullptr when code_state() is kRefused, memory ran out, or `bytes` is 0 or above 1 GiB. Thread-safe; code stays valid in forked
// children, and both sides may go on publishing.
const void* publish(const void* code, size_t bytes, std::string_view name);

}  // namespace okl::jit
