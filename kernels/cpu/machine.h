// SPDX-License-Identifier: Apache-2.0
// The machine as selection sees it: the probe or a profile, under the caps of the settings.
#pragma once

#include <cstdint>

#include "kernels/cpu/cpu_source.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/system_files.h"
#include "kernels/cpu/topology.h"
#include "omni/cpu.h"

namespace okl {

// Call ensure_initialised() (settings.h) first in every API entry: it is where an unknown environment value is reported.

// The effective machine: the profile if one is set, else the probe; isa after OMNI_MAX_ISA and without OMNI_ISA_AVX512BF16 when its
// self-test disagreed. Does not request AMX: a kernel that needs it asks amx_permission() and, refused, selects again; from then on
// the bits are gone. Thread-safe; about 50 ns after the first call.
omni_machine current_machine();

// OMNI_ISA_* of the processor that runs this code. Neither a cap nor a profile changes it; a refused AMX request and a self-test
// that disagreed do.
IsaMask hardware_isa();

// Affinity, control group and performance cores of this machine (never of a profile), at least 1. It does not know
// OMNI_NUM_THREADS: that is settings().num_threads.
uint32_t default_thread_count();

// The start-up self-test's verdict on VDPBF16PS: true takes its tier away. Thread-safe.
void set_bf16_dot_demoted(bool demoted);

// Replaces the probe; nullptr restores it. The struct is copied.
void set_profile(const omni_machine* machine);
bool profile_is_set();

// For tests, which no C entry reaches: bits that this processor lacks and a software model executes (jit/amx_model). They count as
// hardware in hardware_isa() and in the probe, so that kernels which need them are chosen and run. Tile bits still depend on
// amx_permission(): see set_amx_source(). 0 ends it. Not while other threads select.
void set_modelled_isa(IsaMask bits);

// The probe as a pure function, for tests: no permission asked, no cap, no self-test.
omni_machine probe_machine(const CpuSource& cpu, const SystemFiles& files, const Topology& topology);

}  // namespace okl
