// SPDX-License-Identifier: Apache-2.0
// How omni-generate ends when it cannot do what it was asked: one line on stderr and a code.
#pragma once

#include <stdexcept>
#include <string>

namespace ref::cli {

enum class Exit : int {
  kOk = 0,
  kUsage = 2,    // an option or its value
  kModel = 3,    // a file of the model
  kInput = 4,    // the prompt, the text or another input file
  kMemory = 5,   // not enough memory
  kDeparts = 6,  // parity: a tensor departs from the golden
  kMachine = 7,  // the library refuses: no kernel, or a profile of another machine
  kOutput = 8,   // the output cannot be written
  kLimit = 9,    // omni-speak: a limit ended speech before its end
  kSignal = 128  // plus the number of the signal that ended the run: 130 after Ctrl-C
};

struct Failure : std::runtime_error {
  Failure(Exit exit_code, const std::string& text) : std::runtime_error(text), code(exit_code) {}
  Exit code;
};

// Thrown where a signal ends something that has no result yet.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace ref::cli
