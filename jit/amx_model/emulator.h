// SPDX-License-Identifier: Apache-2.0
// Runs AMX and AVX-VNNI instructions in software on processors that raise #UD for them. For tests only: nothing in the library
// links it.
//
// While an Emulator lives, a SIGILL handler decodes the instruction that trapped, executes it on the tiles of the thread (or on the
// vector registers in the signal's frame) and goes on behind it, through any further modelled instructions that follow immediately:
// a trap costs 11 us under a hypervisor, a TILEZERO inside one nothing to speak of. What the processor would refuse is refused with
// what Linux would send: #UD goes to the SIGILL action from before (the default one kills), #GP becomes a SIGSEGV with si_code
// SI_KERNEL, both with the instruction pointer on the instruction.
//
// UD2 right before a modelled instruction makes it trap on every processor and run in software: that is how the model is compared
// with hardware that has the instruction.
#pragma once

#include <cstdint>

#include "jit/amx_model/tiles.h"

namespace okl::amx_model {

class Emulator {
 public:
  // Installs the handler for the process. One at a time; threads may run modelled code from here to the destructor.
  Emulator();
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
};

// The calling thread's tiles, unconfigured in a new thread.
Tiles& this_thread_tiles();

// Of the calling thread, since it began.
struct Counts {
  uint64_t traps = 0, tile_instructions = 0, vector_instructions = 0, faults = 0;
};
const Counts& this_thread_counts();

}  // namespace okl::amx_model
