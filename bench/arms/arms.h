// SPDX-License-Identifier: Apache-2.0
// Every arm that exists, and which of them a case gets.
#ifndef OMNI_BENCH_ARMS_ARMS_H
#define OMNI_BENCH_ARMS_ARMS_H

#include <memory>
#include <string>
#include <vector>

#include "bench/arm.h"
#include "bench/operands.h"
#include "bench/options.h"
#include "bench/reference.h"

namespace omnibench {

/// How one of our arms chooses its kernel; empty strings choose nothing.
struct OurChoice {
  std::string kernel;   ///< a registry name to force
  std::string max_isa;  ///< a tier to cap at
};

std::unique_ptr<Arm> make_linear_arm(std::string name, Reference& reference, OurChoice choice);
std::unique_ptr<Arm> make_pack_arm(std::string name, Reference& reference, OurChoice choice);
std::unique_ptr<Arm> make_dequant_arm(std::string name, Reference& reference, OurChoice choice);
/// oneDNN's bf16 matmul on prepacked, dequantised weights: four times the bytes of ours.
std::unique_ptr<Arm> make_onednn_arm(std::string name, Reference& reference);
std::unique_ptr<Arm> make_read_arm(std::string name, Operands& operands);
/// Register-only arithmetic: "peak-fma" or "peak-bf16".
std::unique_ptr<Arm> make_peak_arm(std::string name, const Operands& operands, bool bf16);
/// A process that serves cases over its standard input and output (docs/workers.md).
std::unique_ptr<Arm> make_worker_arm(std::string name, Reference& reference, std::string command);
/// The whole time of a command, start-up included.
std::unique_ptr<Arm> make_command_arm(std::string name, std::string command);

/// One of our arms for the operation of the case.
std::unique_ptr<Arm> make_our_arm(const std::string& name, Reference& reference, const OurChoice& choice);

/// What omni_select would choose; "" when it refuses.
std::string kernel_for(const Operands& operands, const OurChoice& choice);

struct ArmName {
  std::string name, what;
};
/// Names that --arms takes on this machine, besides kernel names.
std::vector<ArmName> arm_names();
/// Tiers that this machine can run, highest first.
std::vector<std::string> usable_tiers();

/// Throws UsageError when --arms names what does not exist here or does not serve --op; before anything is set up.
void check_arm_names(const RunOptions& options);

/// The arms of a case in reporting order. Notes say which default arms are the same kernel as another and were left out.
std::vector<std::unique_ptr<Arm>> make_arms(const RunOptions& options, Reference& reference, std::vector<std::string>* notes);

}  // namespace omnibench
#endif
