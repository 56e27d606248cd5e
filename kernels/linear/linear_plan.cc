// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear/linear_plan.h"

#include <algorithm>
#include <cinttypes>

#include "jit/memory/executable_memory.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/gemv/bf16_self_test.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

constexpr int64_t kBlock = 64;
// Below this many elements of x one thread prepares faster than a region starts: 2048 inputs take about 1 us.
constexpr int64_t kPrepareAlone = int64_t{1} << 16;

}  // namespace

const char* code_state_text(const KernelRow& row) {
  if (row.code == Code::kCompiled) return "compiled";
  return jit::code_state() == jit::CodeState::kDoubleMapped ? "jit (double mapping)" : "jit";
}

omni_status selection_machine(const char* max_isa, SelectionMachine* out) {
  ensure_bf16_dot_tested();
  const omni_machine machine = current_machine();
  out->isa = machine.isa;
  out->traits = machine.traits;
  if (max_isa != nullptr && max_isa[0] != '\0') {
    const std::optional<IsaMask> cap = tier_mask(max_isa);
    if (!cap) return fail(OMNI_ERR_UNKNOWN_NAME, "max_isa \"%s\" is no tier", max_isa);
    out->isa &= *cap;
  }
  const AmxPermission* permission = amx_permission_if_requested();
  if (permission != nullptr && !profile_is_set()) out->amx_refusal = permission->reason;
  out->jit_allowed = jit::code_state() != jit::CodeState::kRefused;
  out->jit_reason = jit::code_state_reason();
  return OMNI_OK;
}

Selection select_with_permission(const LinearRequest& request, SelectionMachine machine) {
  Selection selection = select_linear(request, machine);
  if (selection.row == nullptr || (selection.row->required & kIsaAmxBits) == 0 || profile_is_set()) return selection;
  const AmxPermission& permission = amx_permission();
  if (permission.granted) return selection;
  trace("dispatch: %s is passed over: %s", std::string(selection.row->name).c_str(), permission.reason.c_str());
  machine.isa &= ~kIsaAmxBits;
  machine.amx_refusal = permission.reason;
  return select_linear(request, machine);
}

omni_status LinearPlan::make(const SelectionMachine& machine) {
  if (omni_status status = check_facts(); status != OMNI_OK) return status;
  allowed_isa_ = machine.isa & hardware_isa();
  if (facts.max_m > 1) {
    if (omni_status status = choose(machine, true); status != OMNI_OK) return status;
  }
  return choose(machine, false);
}

omni_status LinearPlan::choose(const SelectionMachine& machine, bool many) {
  LinearRequest request;
  request.numerics = facts.numerics;
  request.x_type = kernel_activation();
  request.weights = static_cast<omni_format>(facts.weights.format);
  request.many_rows = many;
  const std::string preferred = settings().kernel;
  if (!facts.kernel.empty()) {
    if (find_kernel(facts.kernel) == nullptr)
      return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%s\" is in no registry row", facts.kernel.c_str());
    request.kernel = facts.kernel;
  } else {
    request.kernel = preferred;
    request.kernel_optional = true;
  }
  Selection selection = select_with_permission(request, machine);
  if (selection.row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "%s", selection.reason.c_str());
  if (!facts.remark.empty()) selection.reason += "; " + facts.remark;
  const std::string name(selection.row->name);
  if (!adopt(*selection.row, many)) return fail(OMNI_ERR_JIT, "%s could not be generated", name.c_str());
  if (const IsaMask missing = selection.row->required & ~hardware_isa(); missing != 0) {
    not_runnable_ = name + " needs " + isa_to_text(missing) + ", which this processor lacks";
  }
  trace("dispatch: n=%" PRId64 " k=%" PRId64 " m=%s -> %s (%s)", facts.weights.n, facts.weights.k, many ? "2+" : "1", name.c_str(),
        selection.reason.c_str());
  (many ? many_ : one_) = std::move(selection);
  return OMNI_OK;
}

void LinearPlan::describe(omni_plan_info* out) const {
  const bool many = facts.max_m > 1;
  out->isa_required = one_.row->required | (many ? many_.row->required : 0);
  out->kernel = one_.row->name.data();
  out->reason = one_.reason.c_str();
  out->kernel_rows = many ? many_.row->name.data() : "";
  out->reason_rows = many_.reason.c_str();
  out->code = code_state_text(*one_.row);
  out->code_bytes = code_bytes();
  out->weights = facts.weights;
}

int64_t LinearPlan::most_tasks() const { return facts.max_threads == 1 ? 1 : int64_t{facts.max_threads} * kTasksPerThread; }

size_t LinearPlan::workspace_bytes(uint32_t m) const {
  if (m == 0) return 0;
  return prepared_bytes(m) + static_cast<size_t>(most_tasks()) * scratch_bytes(m);
}

void LinearPlan::run(const omni_linear_args& args, const omni_parallel& parallel) const {
  const uint32_t units = row_units(args.m);
  const int64_t n = facts.weights.n, blocks = (n + kBlock - 1) / kBlock;
  const bool alone = int64_t{args.m} * facts.weights.k < kPrepareAlone;
  split_evenly(parallel, units, alone ? 1 : units,
               [&](int64_t first, int64_t last) { prepare(args, static_cast<uint32_t>(first), static_cast<uint32_t>(last)); });

  // Channels are cut first: whoever unpacks a block does it once for all rows. Rows are cut, too, when blocks are few.
  const int64_t wanted = parallel.threads == 1 ? 1 : int64_t{parallel.threads} * kTasksPerThread;
  const int64_t parts = blocks >= wanted ? 1 : std::min<int64_t>(units, (wanted + blocks - 1) / blocks);
  const size_t scratch = scratch_bytes(args.m);
  uint8_t* const slots = static_cast<uint8_t*>(args.workspace) + prepared_bytes(args.m);
  const int64_t tasks = scratch == 0 ? blocks * parts : std::min(most_tasks(), blocks * parts);
  split_tasks(parallel, blocks * parts, tasks, [&](int64_t task, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t part = begin / blocks, first = begin % blocks, last = std::min(blocks, first + end - begin);
      compute(args, static_cast<uint32_t>(units * part / parts), static_cast<uint32_t>(units * (part + 1) / parts), first * kBlock,
              std::min(last * kBlock, n), slots + static_cast<size_t>(task) * scratch);
      begin += last - first;
    }
  });
}

}  // namespace okl
