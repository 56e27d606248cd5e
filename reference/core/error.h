// SPDX-License-Identifier: Apache-2.0
// The one exception of the reference decoder: its text is the line that a user reads, naming file, tensor or flag and the value.
#pragma once

#include <stdexcept>

namespace ref {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// There is not enough memory: nothing is wrong with the model.
class MemoryError : public Error {
 public:
  using Error::Error;
};

// The destination, not the source, is at fault: no room, no permission, a name that is taken.
class OutputError : public Error {
 public:
  using Error::Error;
};

}  // namespace ref
