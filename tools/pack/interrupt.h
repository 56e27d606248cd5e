// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as an exception: what was staged is removed on the way out. A second one ends the program at once.
#pragma once

namespace pack {

struct Interrupted {
  int signal;
};

void watch_signals();
// Throws Interrupted when a signal came.
void check_signals();

}  // namespace pack
