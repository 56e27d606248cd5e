// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/arms/arms.h"
#include "bench/ops/op.h"

namespace omnibench {
namespace {

/// The portable tier does some 0.3e9 operations a second and core; a run takes 15 calls.
constexpr double kMostOperationsOfSlowTiers = 1e9;

omni_kernel_info kernel_info(size_t index) {
  omni_kernel_info info{};
  info.size = sizeof info;
  check(omni_kernel_get(index, &info), "omni_kernel_get");
  return info;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_amx(const omni_kernel_info& info) { return std::string(info.isa).starts_with("amx"); }

bool is_kernel(const std::string& name) {
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    if (name == kernel_info(i).name) return true;
  }
  return false;
}

/// Whether the row may be one of this operation's.
bool serves(const omni_kernel_info& info, const Op& op) {
  const std::string name = info.name;
  return contains(op.registry, info.op) &&
         (op.weights.empty() || std::any_of(op.weights.begin(), op.weights.end(), [&](const std::string& word) {
            return name.find("_" + word + "_") != std::string::npos;
          }));
}

/// Kernels of exactly this tier that an operation may have.
std::vector<std::string> kernels_of_tier(const Op& op, const std::string& tier) {
  std::vector<std::string> names;
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    const omni_kernel_info info = kernel_info(i);
    if (info.usable != 0 && tier == info.isa && serves(info, op)) names.emplace_back(info.name);
  }
  return names;
}

/// The best kernel of exactly this tier. A cap alone is not enough: selection may rightly prefer a lower tier (FMA kernels where
/// VDPBF16PS is slow), and then the tier's own kernel is asked for by name. Both strings empty: the tier has none for the case.
OurChoice tier_choice(Workload& workload, const std::string& tier) {
  const OurChoice capped{"", tier};
  const std::vector<std::string> of_tier = kernels_of_tier(op_of(workload.the_case()), tier);
  if (of_tier.empty()) return {};
  if (contains(of_tier, kernel_for(workload, capped))) return capped;
  bool any_named = false;
  for (const std::string& kernel : of_tier) {
    const std::string got = kernel_for(workload, {kernel, ""});
    if (got == kernel) return {kernel, ""};
    any_named = any_named || !got.empty();
  }
  // An entry that never names its kernel (omni_repack) is capped; one that names another one has none of this tier.
  return any_named || !kernel_for(workload, {}).empty() ? OurChoice{} : capped;
}

/// omni, and every other tier that this machine can run.
void add_ours(const RunOptions& options, Workload& workload, std::vector<std::unique_ptr<Arm>>& arms,
              std::vector<std::string>* notes) {
  if (op_of(workload.the_case()).only_workers) return;
  const OurChoice best{"", options.isa};
  arms.push_back(make_our_arm("omni", workload, best));
  if (options.only_chosen) return;
  const Op& op = op_of(workload.the_case());
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    const omni_kernel_info info = kernel_info(i);
    if (info.usable == 0 && is_amx(info) && serves(info, op)) notes->push_back(fmt::format("{}: not timed on hardware", info.name));
  }
  const std::string best_kernel = kernel_for(workload, best);
  const auto rank_of = [](const std::string& tier) { return std::find(tier_names().begin(), tier_names().end(), tier); };
  bool highest = true;
  for (const std::string& tier : usable_tiers()) {
    if (!options.isa.empty() && rank_of(tier) > rank_of(options.isa)) continue;
    if (kernels_of_tier(op, tier).empty()) continue;
    const bool first = std::exchange(highest, false);
    const OurChoice choice = tier_choice(workload, tier);
    if (choice.kernel.empty() && choice.max_isa.empty()) continue;
    if (best_kernel.empty() ? first : kernel_for(workload, choice) == best_kernel) {
      notes->push_back(fmt::format("omni is the {} tier here: no second arm for it", tier));
    } else if (tier == "portable" && operations_of(workload.the_case()) > kMostOperationsOfSlowTiers) {
      notes->push_back(fmt::format("omni-{} was left out, a call would take seconds: name it in --arms to have it", tier));
    } else {
      arms.push_back(make_our_arm("omni-" + tier, workload, choice));
    }
  }
}

std::unique_ptr<Arm> make_limit(const std::string& name, const std::string& limit, Workload& workload) {
  return limit == "read" ? make_read_arm(name, workload) : make_peak_arm(name, workload, limit);
}

std::unique_ptr<Arm> make_named(const RunOptions& options, Workload& workload, const ArmRequest& request) {
  if (!request.command.empty()) {
    return request.worker ? make_worker_arm(request.name, workload, request.command)
                          : make_command_arm(request.name, request.command);
  }
  const std::string& arm = request.arm;
  const Op& op = op_of(workload.the_case());
  if (arm == "omni") return make_our_arm(request.name, workload, {"", options.isa});
  if (contains(op.peers, arm)) return workload.peer(arm, request.name);
  if (contains(op.limits, arm)) return make_limit(request.name, arm, workload);
  if (is_kernel(arm)) return make_our_arm(request.name, workload, {arm, ""});
  const std::vector<std::string> tiers = usable_tiers();
  if (arm.starts_with("omni-") && contains(tiers, arm.substr(5))) {
    const OurChoice choice = tier_choice(workload, arm.substr(5));
    return make_our_arm(request.name, workload,
                        choice.kernel.empty() && choice.max_isa.empty() ? OurChoice{"", arm.substr(5)} : choice);
  }
  throw UsageError(fmt::format("--arms {}: no such arm or kernel here (see --list)", arm));
}

}  // namespace

void check_arm_names(const RunOptions& options) {
  const std::vector<ArmName> names = arm_names();
  for (const ArmRequest& request : options.arms) {
    if (!request.command.empty()) continue;
    const bool known = std::any_of(names.begin(), names.end(), [&](const ArmName& n) { return n.name == request.arm; });
    if (!known && !is_kernel(request.arm)) {
      throw UsageError(fmt::format("--arms {}: no such arm or kernel here (see --list)", request.arm));
    }
    if (!known || request.arm.starts_with("omni")) continue;
    for (const Case& c : options.cases) {
      const Op& op = op_of(c);
      if (!contains(op.peers, request.arm) && !contains(op.limits, request.arm)) {
        throw UsageError(fmt::format("--arms {}: does not serve --op {}", request.arm, op.name));
      }
    }
  }
}

std::vector<std::string> usable_tiers() {
  std::vector<std::string> out;
  for (auto tier = tier_names().rbegin(); tier != tier_names().rend(); ++tier) {
    for (size_t i = 0; i < omni_kernel_count(); ++i) {
      const omni_kernel_info info = kernel_info(i);
      if (*tier == info.isa && info.usable != 0) {
        out.push_back(*tier);
        break;
      }
    }
  }
  return out;
}

std::vector<std::string> kernels_not_timed() {
  std::vector<std::string> out;
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    const omni_kernel_info info = kernel_info(i);
    if (info.usable != 0) continue;
    out.push_back(fmt::format("{}: {}", info.name, is_amx(info) ? "not timed on hardware" : "this machine cannot run it"));
  }
  return out;
}

std::vector<ArmName> arm_names() {
  std::vector<ArmName> names = {{"omni", "what the library chooses"}};
  for (const std::string& tier : usable_tiers()) names.push_back({"omni-" + tier, "the library's best kernel of that tier"});
  names.push_back({"onednn", "oneDNN's matmul on weights in its own order: bf16, or fp32 where ours are (linear operations)"});
  names.push_back({"read", "limit: the fastest of several pure-load loops over the same bytes"});
  names.push_back({"peak-fma", "limit: register-only fp32 multiply-adds"});
  names.push_back({"peak-bf16", "limit: register-only VDPBF16PS"});
  names.push_back({"peak-vnni", "limit: register-only VPDPBUSD, 512 bits or the 256-bit VEX form"});
  return names;
}

std::vector<std::unique_ptr<Arm>> make_arms(const RunOptions& options, Workload& workload, std::vector<std::string>* notes) {
  std::vector<std::unique_ptr<Arm>> arms;
  const Op& op = op_of(workload.the_case());
  const bool defaults = options.arms.empty() || options.add_arms;
  if (defaults) {
    add_ours(options, workload, arms, notes);
    const auto wanted = [&](const std::string& peer) { return !options.only_chosen || contains(options.wanted, peer); };
    for (const std::string& peer : op.peers) {
      if (wanted(peer)) arms.push_back(workload.peer(peer, peer));
    }
    for (const Peer& worker : op.workers) {
      if (!wanted(worker.name)) continue;
      if (options.peers.empty()) {
        notes->push_back(fmt::format("{} was left out: --peers says how to run it (bench/peers/README.md)", worker.name));
      } else {
        arms.push_back(make_worker_arm(worker.name, workload, options.peers + " " + worker.argument));
      }
    }
  }
  for (const ArmRequest& request : options.arms) arms.push_back(make_named(options, workload, request));
  if (defaults) {
    for (const std::string& limit : op.limits) arms.push_back(make_limit(limit, limit, workload));
  }
  return arms;
}

}  // namespace omnibench
