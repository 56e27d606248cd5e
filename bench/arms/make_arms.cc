// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/arms/arms.h"

namespace omnibench {
namespace {

omni_kernel_info kernel_info(size_t index) {
  omni_kernel_info info{};
  info.size = sizeof info;
  check(omni_kernel_get(index, &info), "omni_kernel_get");
  return info;
}

bool is_kernel(const std::string& name) {
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    if (name == kernel_info(i).name) return true;
  }
  return false;
}

/// Rows of "gemm" serve the gemv operation, too: they are its kernels for more rows and its portable twins.
bool serves(const omni_kernel_info& info, const std::string& op) {
  return info.usable != 0 && (op == info.op || (op == "gemv" && std::string("gemm") == info.op));
}

/// The best kernel of exactly this tier. A cap alone is not enough: selection may rightly prefer a lower tier (FMA kernels where
/// VDPBF16PS is slow), and then the tier's own kernel is asked for by name.
OurChoice tier_choice(const Operands& operands, const std::string& tier) {
  OurChoice capped{"", tier};
  const Case& c = operands.the_case();
  if (c.op == "pack") return capped;
  const std::string numerics = c.op == "gemv" ? to_text(c.numerics) : "";
  std::vector<std::string> of_tier;
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    const omni_kernel_info info = kernel_info(i);
    if (serves(info, c.op) && tier == info.isa && (numerics.empty() || numerics == info.numerics)) {
      of_tier.emplace_back(info.name);
    }
  }
  if (of_tier.empty()) return {};
  if (c.op == "dequant") return {of_tier[0], ""};
  const std::string chosen = kernel_for(operands, capped);
  if (std::find(of_tier.begin(), of_tier.end(), chosen) != of_tier.end()) return capped;
  for (const std::string& kernel : of_tier) {
    if (kernel_for(operands, {kernel, ""}) == kernel) return {kernel, ""};
  }
  return {};
}

bool has_op_at(const std::string& op, const std::string& tier) {
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    const omni_kernel_info info = kernel_info(i);
    if (tier == info.isa && serves(info, op)) return true;
  }
  return false;
}

void add_ours(const RunOptions& options, Reference& reference, std::vector<std::unique_ptr<Arm>>& arms,
              std::vector<std::string>* notes) {
  Operands& operands = reference.operands();
  const std::string& op = operands.the_case().op;
  const OurChoice best{"", options.isa};
  arms.push_back(make_our_arm("omni", reference, best));
  const std::string best_kernel = op == "gemv" ? kernel_for(operands, best) : "";
  const auto rank_of = [](const std::string& tier) { return std::find(tier_names().begin(), tier_names().end(), tier); };
  bool highest = true;
  for (const std::string& tier : usable_tiers()) {
    if (!options.isa.empty() && rank_of(tier) > rank_of(options.isa)) continue;
    if (!has_op_at(op, tier)) continue;
    const bool first = std::exchange(highest, false);
    const OurChoice choice = tier_choice(operands, tier);
    if (choice.kernel.empty() && choice.max_isa.empty()) continue;
    const bool same = op == "gemv" ? kernel_for(operands, choice) == best_kernel : first;
    if (same) {
      notes->push_back(fmt::format("omni is the {} tier here: no second arm for it", tier));
    } else {
      arms.push_back(make_our_arm("omni-" + tier, reference, choice));
    }
  }
}

std::unique_ptr<Arm> make_named(const RunOptions& options, Reference& reference, const ArmRequest& request) {
  if (!request.command.empty()) {
    return request.worker ? make_worker_arm(request.name, reference, request.command)
                          : make_command_arm(request.name, request.command);
  }
  Operands& operands = reference.operands();
  const std::string& arm = request.arm;
  if (arm == "omni") return make_our_arm(request.name, reference, {"", options.isa});
  if (arm == "onednn") return make_onednn_arm(request.name, reference);
  if (arm == "read") return make_read_arm(request.name, operands);
  if (arm == "peak-fma") return make_peak_arm(request.name, operands, false);
  if (arm == "peak-bf16") return make_peak_arm(request.name, operands, true);
  if (is_kernel(arm)) return make_our_arm(request.name, reference, {arm, ""});
  const std::vector<std::string> tiers = usable_tiers();
  if (arm.starts_with("omni-") && std::find(tiers.begin(), tiers.end(), arm.substr(5)) != tiers.end()) {
    const OurChoice choice = tier_choice(operands, arm.substr(5));
    return make_our_arm(request.name, reference,
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
    const bool gemv_only = request.arm == "onednn" || request.arm.starts_with("peak-");
    for (const std::string& op : options.ops) {
      if (gemv_only && op != "gemv") throw UsageError(fmt::format("--arms {}: does not serve --op {}", request.arm, op));
    }
  }
}

std::unique_ptr<Arm> make_our_arm(const std::string& name, Reference& reference, const OurChoice& choice) {
  const std::string& op = reference.operands().the_case().op;
  if (op == "pack") return make_pack_arm(name, reference, choice);
  if (op == "dequant") return make_dequant_arm(name, reference, choice);
  return make_linear_arm(name, reference, choice);
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

std::vector<ArmName> arm_names() {
  std::vector<ArmName> names = {{"omni", "what the library chooses"}};
  for (const std::string& tier : usable_tiers()) names.push_back({"omni-" + tier, "the library's best kernel of that tier"});
  names.push_back({"onednn", "oneDNN's bf16 matmul on prepacked, dequantised weights (gemv only)"});
  names.push_back({"read", "limit: the fastest of several pure-load loops over the same bytes"});
  names.push_back({"peak-fma", "limit: register-only fp32 multiply-adds (gemv only)"});
  names.push_back({"peak-bf16", "limit: register-only VDPBF16PS (gemv only)"});
  return names;
}

std::vector<std::unique_ptr<Arm>> make_arms(const RunOptions& options, Reference& reference, std::vector<std::string>* notes) {
  std::vector<std::unique_ptr<Arm>> arms;
  Operands& operands = reference.operands();
  if (options.arms.empty() || options.add_arms) {
    add_ours(options, reference, arms, notes);
    if (operands.the_case().op == "gemv") arms.push_back(make_onednn_arm("onednn", reference));
  }
  for (const ArmRequest& request : options.arms) arms.push_back(make_named(options, reference, request));
  if (options.arms.empty() || options.add_arms) {
    arms.push_back(make_read_arm("read", operands));
    if (operands.the_case().op == "gemv") {
      arms.push_back(make_peak_arm("peak-fma", operands, false));
      arms.push_back(make_peak_arm("peak-bf16", operands, true));
    }
  }
  return arms;
}

}  // namespace omnibench
