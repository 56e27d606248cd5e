// SPDX-License-Identifier: Apache-2.0
// Every arm that exists, and which of them a case gets.
#ifndef OMNI_BENCH_ARMS_ARMS_H
#define OMNI_BENCH_ARMS_ARMS_H

#include <memory>
#include <string>
#include <vector>

#include "bench/arm.h"
#include "bench/options.h"
#include "bench/workload.h"

namespace omnibench {

/// One of our arms for the operation of the case.
std::unique_ptr<Arm> make_our_arm(std::string name, Workload& workload, OurChoice choice);
std::unique_ptr<Arm> make_read_arm(std::string name, Workload& workload);
/// Register-only arithmetic; `which` is "peak-fma", "peak-bf16" or "peak-vnni".
std::unique_ptr<Arm> make_peak_arm(std::string name, const Workload& workload, const std::string& which);
/// A process that serves cases over its standard input and output (docs/workers.md).
std::unique_ptr<Arm> make_worker_arm(std::string name, Workload& workload, std::string command);
/// The whole time of a command, start-up included.
std::unique_ptr<Arm> make_command_arm(std::string name, std::string command);

/// What the library would choose; "" when it refuses or does not say.
std::string kernel_for(Workload& workload, const OurChoice& choice);

struct ArmName {
  std::string name, what;
};
/// Names that --arms takes on this machine, besides kernel names.
std::vector<ArmName> arm_names();
/// Tiers that this machine can run, highest first.
std::vector<std::string> usable_tiers();
/// Kernels of the registry that need what this machine lacks, "name: why"; AMX kernels are "not timed on hardware".
std::vector<std::string> kernels_not_timed();

/// Throws UsageError when --arms names what does not exist here or does not serve an operation; before anything is set up.
void check_arm_names(const RunOptions& options);

/// The arms of a case in reporting order. Notes say which default arms were left out and why.
std::vector<std::unique_ptr<Arm>> make_arms(const RunOptions& options, Workload& workload, std::vector<std::string>* notes);

}  // namespace omnibench
#endif
