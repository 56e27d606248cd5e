// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pack {

// Of omni-pack. After SIGINT and SIGTERM it is 128 plus their number.
enum Exit : int {
  kDone = 0,
  kUsage = 2,    // options
  kInput = 3,    // the source cannot be packed; a packed model is not what it should be
  kOutput = 4,   // the destination cannot be written
  kMachine = 5,  // memory, or the library itself
};

}  // namespace pack
