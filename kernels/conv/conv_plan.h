// SPDX-License-Identifier: Apache-2.0
// A convolution over rows of time as a dense product over (tap, input channel), on the kernels of the dense family.
//
// Seven shifted copies of the rows (im2col) would be seven times the memory. A chunk of K is instead a run of channels of one tap:
// its rows are the rows of x themselves, further down by the tap, and one stride apart. docs/convolution.md has the picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/api/plan.h"
#include "kernels/gemm/dense_plan.h"
#include "omni/conv1d.h"

namespace okl {

// A checked query: `linear` is the product's, with K = taps * inputs.
struct ConvFacts {
  LinearFacts linear;
  int64_t inputs, taps, dilation, stride;
};

// Where a tile finds its rows.
enum class ConvRows : uint8_t {
  kDirect,    // in x: fp32 in ascending order is what the kernels multiply
  kPrepared,  // in the workspace: every row of x once, widened, scrubbed, its pairs exchanged
  kGathered   // in the workspace: all of K for each output row, where a row of x has too few channels for a chunk
};

// Inputs [k0, k0 + inputs) of K: channels from `channel` on of `tap`; of gathered rows the tap counts chunks.
struct ConvChunk {
  int64_t k0, inputs, tap, channel;
};

// Row tiles of one run: tiles [first(part), first(part + 1)) share the weights of a block while they are in the cache.
struct ConvParts {
  uint32_t tiles, parts;

  uint32_t first(uint32_t part) const { return static_cast<uint32_t>(uint64_t{tiles} * part / parts); }
};

class ConvPlan : public omni_plan {
 public:
  static constexpr PlanKind kKind = PlanKind::kConv1d;

  explicit ConvPlan(ConvFacts query);

  omni_status make(const SelectionMachine& machine);
  void describe(omni_plan_info* out) const override;

  size_t workspace_bytes(uint32_t m) const;
  // Arguments are checked and m is not 0.
  void run(const omni_conv1d_args& args, const omni_parallel& parallel) const;

  // Rows of x that m output rows read.
  int64_t input_rows(uint32_t m) const { return (m - 1) * facts.stride + (facts.taps - 1) * facts.dilation + 1; }

  const ConvFacts facts;
  const std::string& not_runnable() const { return not_runnable_; }

 private:
  struct Run;
  bool shares_weights(uint32_t m) const;
  const std::vector<ConvChunk>& chunks_for(uint32_t m) const { return shares_weights(m) ? shared_ : streamed_; }
  DenseTiles tiles_of(uint32_t m) const { return {m, code_.max_rows()}; }
  ConvParts parts_of(uint32_t m, uint32_t threads) const;
  int64_t blocks() const { return blocks_.blocks(facts.linear.weights.n); }
  int64_t element() const { return code_.kernel().element == DenseElement::kFloat ? 4 : 2; }
  int64_t most_tasks() const;
  size_t prepared_bytes(uint32_t m) const;
  size_t panel_bytes(uint32_t m) const;
  size_t scratch_bytes(uint32_t m) const;
  DenseRows prepared_rows(int64_t rows) const;
  DenseRows gathered_rows(uint32_t m) const;

  void prepare(const omni_conv1d_args& args, const omni_parallel& parallel) const;
  void compute_block(const Run& run, int64_t block, uint32_t first_tile, uint32_t last_tile, uint8_t* scratch) const;

  const Blocks64& blocks_;
  const DenseConfig config_;  // rows, block_width and panel are 0
  DenseCodeSet code_;
  const DenseRowsKernel* rows_kernel_ = nullptr;
  ConvRows rows_ = ConvRows::kDirect;
  std::vector<ConvChunk> shared_;    // several tiles come by each
  std::vector<ConvChunk> streamed_;  // one tile passes through all of K
  Selection selection_;
  std::string not_runnable_;
};

}  // namespace okl
