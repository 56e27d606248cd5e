// SPDX-License-Identifier: Apache-2.0
// Runs a program and keeps what it wrote, for tests of command lines.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace probe::testing {

struct Outcome {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out, err;

  // Lines of `err` without those that qemu writes about processor features it does not model.
  std::vector<std::string> complaints() const;
};

struct Command {
  std::vector<std::string> arguments;              // arguments[0] is a path
  std::map<std::string, std::string> environment;  // added to the caller's; OMNI_* of the caller is dropped
  // Runs in the child before exec; false ends it with kSetupRefused. Only system calls: the child of a threaded test program.
  std::function<bool()> setup;
};

inline constexpr int kSetupRefused = 99;

Outcome run(const Command& command);

// Full path of a program of PATH, "" when there is none.
std::string find_program(const std::string& name);

}  // namespace probe::testing
