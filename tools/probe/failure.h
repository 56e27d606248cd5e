// SPDX-License-Identifier: Apache-2.0
// How omni-probe ends when it cannot do what it was asked: one line on stderr and a code.
#pragma once

#include <stdexcept>
#include <string>

namespace probe {

enum class Exit : int { kUsage = 2, kFile = 3, kLibrary = 4 };

struct Failure : std::runtime_error {
  Failure(Exit exit_code, const std::string& text) : std::runtime_error(text), code(exit_code) {}
  Exit code;
};

}  // namespace probe
