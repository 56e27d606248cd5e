// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_plan.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

// Rows with fewer channels are gathered: a chunk's sums pass through memory, which takes as long as about six inputs.
constexpr int64_t kFewChannels = 32;

// Runs of channels of each tap, `most` at most and as even as steps of eight allow.
std::vector<ConvChunk> cut_taps(const ConvFacts& facts, int64_t most) {
  std::vector<ConvChunk> chunks;
  const int64_t pieces = (facts.inputs + most - 1) / most;
  const int64_t piece = std::min(most, ((facts.inputs + pieces - 1) / pieces + 7) / 8 * 8);
  for (int64_t tap = 0; tap < facts.taps; ++tap) {
    for (int64_t channel = 0; channel < facts.inputs; channel += piece) {
      chunks.push_back({tap * facts.inputs + channel, std::min(piece, facts.inputs - channel), tap, channel});
    }
  }
  return chunks;
}

std::vector<ConvChunk> cut_gathered(int64_t k) {
  std::vector<ConvChunk> chunks;
  for (int64_t k0 = 0; k0 < k; k0 += kDenseChunkInputs) {
    chunks.push_back({k0, std::min<int64_t>(kDenseChunkInputs, k - k0), k0 / kDenseChunkInputs, 0});
  }
  return chunks;
}

}  // namespace

ConvPlan::ConvPlan(ConvFacts query)
    : omni_plan(kKind),
      facts(std::move(query)),
      blocks_(dense_blocks(facts.linear.weights.format)),
      config_(dense_config(facts.linear)) {}

omni_status ConvPlan::make(const SelectionMachine& machine) {
  LinearRequest request;
  request.op = Op::kConv1d;
  request.numerics = Numerics::kDense;
  request.x_type = facts.linear.x_type;
  request.weights = static_cast<omni_format>(facts.linear.weights.format);
  request.many_rows = true;
  const std::string preferred = settings().kernel;
  if (!facts.linear.kernel.empty() && find_kernel(facts.linear.kernel) == nullptr) {
    return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%.80s\" is in no registry row", facts.linear.kernel.c_str());
  }
  request.kernel_optional = facts.linear.kernel.empty();
  request.kernel = request.kernel_optional ? preferred : facts.linear.kernel;
  selection_ = select_linear(request, machine);
  if (selection_.row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "%s", selection_.reason.c_str());
  const std::string name(selection_.row->name);
  if (!code_.make(*selection_.row, config_, facts.linear.weights.n, facts.linear.max_m)) {
    return fail(OMNI_ERR_JIT, "%s could not be generated", name.c_str());
  }
  rows_kernel_ = &dense_rows_kernel(selection_.row->required);
  if (const IsaMask missing = selection_.row->required & ~hardware_isa(); missing != 0) {
    not_runnable_ = name + " needs " + isa_to_text(missing) + ", which this processor lacks";
  }
  const bool odd = facts.inputs % 2 != 0, halves = facts.linear.weights.format == OMNI_FORMAT_W16;
  if (facts.taps > 1 && (facts.inputs < kFewChannels || (odd && halves))) {
    rows_ = ConvRows::kGathered;  // w16 keeps two inputs together: a tap may not begin inside of a pair
    shared_ = streamed_ = cut_gathered(facts.linear.weights.k);
  } else {
    rows_ = facts.linear.x_type == OMNI_DTYPE_F32 ? ConvRows::kDirect : ConvRows::kPrepared;
    shared_ = cut_taps(facts, kDenseChunkInputs);
    streamed_ = cut_taps(facts, facts.inputs);
  }
  trace("dispatch: conv1d n=%" PRId64 " k=%" PRId64 " -> %s (%s)", facts.linear.weights.n, facts.linear.weights.k, name.c_str(),
        selection_.reason.c_str());
  return OMNI_OK;
}

void ConvPlan::describe(omni_plan_info* out) const {
  out->isa_required = selection_.row->required;
  out->kernel = selection_.row->name.data();
  out->reason = selection_.reason.c_str();
  out->code = code_state_text(*selection_.row);
  out->code_bytes = code_.code_bytes();
  out->weights = facts.linear.weights;
}

bool ConvPlan::shares_weights(uint32_t m) const { return tiles_of(m).tiles > 1 || (code_.kernel().several_passes && m > 1); }

int64_t ConvPlan::most_tasks() const {
  const uint32_t threads = facts.linear.max_threads;
  return threads == 1 ? 1 : int64_t{threads} * kTasksPerThread;
}

DenseRows ConvPlan::prepared_rows(int64_t rows) const {
  // A spare cache line keeps rows of 1024 channels out of each other's sets.
  return {facts.inputs, (facts.inputs + 31) / 32 * 32 + 32, element(), rows};
}

DenseRows ConvPlan::gathered_rows(uint32_t m) const { return {facts.linear.weights.k, kDenseChunkInputs, element(), m}; }

size_t ConvPlan::prepared_bytes(uint32_t m) const {
  if (rows_ == ConvRows::kDirect) return 0;
  return rows_ == ConvRows::kPrepared ? prepared_rows(input_rows(m)).total() : gathered_rows(m).total();
}

size_t ConvPlan::panel_bytes(uint32_t m) const {
  if (!code_.kernel().has_panel || tiles_of(m).tiles == 1) return 0;
  return static_cast<size_t>(config_.panel_inputs * Blocks64::kBlock * element());
}

size_t ConvPlan::workspace_bytes(uint32_t m) const {
  if (m == 0 || facts.linear.weights.n == 0) return 0;
  return prepared_bytes(m) + static_cast<size_t>(most_tasks()) * scratch_bytes(m);
}

}  // namespace okl
