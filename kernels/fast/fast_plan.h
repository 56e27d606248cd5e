// SPDX-License-Identifier: Apache-2.0
// Class fast: bf16 rows on tg4 or w16 weights where a matrix unit sums as it likes. The caller asked for it and knows the bound.
#pragma once

#include <array>

#include "kernels/fast/fast_kernel.h"
#include "kernels/linear/linear_plan.h"

namespace okl {

// The workspace: bf16 rows, then (tg4) the sums of their blocks.
struct FastWorkspace {
  size_t row_bytes;  // of one bf16 row, a multiple of 64
  size_t sum_bytes;  // of the block sums of one row

  explicit FastWorkspace(const FastConfig& config)
      : row_bytes(static_cast<size_t>(config.row_bytes())),
        sum_bytes(config.is_w4() ? static_cast<size_t>(config.blocks()) * 4 : 0) {}
  size_t sums(uint32_t m) const { return row_bytes * m; }
  size_t total(uint32_t m) const { return (sums(m) + sum_bytes * m + 63) / 64 * 64; }
};

// The code of one registry row for one query: full blocks and the tail.
class FastCodeSet {
 public:
  // False when executable memory was refused.
  bool make(const KernelRow& row, const FastConfig& base, int64_t n, uint32_t max_m);

  const FastKernel& kernel() const { return *kernel_; }
  FastTileFn run(bool tail) const { return run_[tail ? 1 : 0]; }
  size_t code_bytes() const { return code_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  const FastKernel* kernel_ = nullptr;
  size_t code_bytes_ = 0, scratch_bytes_ = 0;
  std::array<FastTileFn, 2> run_{};
};

class FastPlan final : public LinearPlan {
 public:
  explicit FastPlan(LinearFacts query);

  uint32_t row_units(uint32_t m) const override { return m; }
  size_t prepared_bytes(uint32_t m) const override { return FastWorkspace(config_).total(m); }
  size_t scratch_bytes(uint32_t m) const override { return code_for(m).scratch_bytes(); }
  void prepare(const omni_linear_args& args, uint32_t first_row, uint32_t last_row) const override;
  void compute(const omni_linear_args& args, uint32_t first_row, uint32_t last_row, int64_t n0, int64_t n1,
               void* scratch) const override;

 protected:
  bool adopt(const KernelRow& row, bool many) override;
  size_t code_bytes() const override { return one_.code_bytes() + many_.code_bytes(); }

 private:
  const FastCodeSet& code_for(uint32_t m) const { return m == 1 ? one_ : many_; }
  // A call's operands from row `row` and channel block `block` on.
  FastTile tile_at(const omni_linear_args& args, int64_t row, int64_t block) const;

  FastConfig config_;  // rows and block_width are 0
  FastCodeSet one_;    // runs of one row
  FastCodeSet many_;   // runs of more
};

// Where no kernel of class fast can serve, turns the query into one of the class that computes its weights with a promise (tg4:
// group, w16: dense); the remark says so. Not when the query names a kernel of class fast.
void serve_fast_by_promised_class(LinearFacts* facts, const SelectionMachine& machine);

}  // namespace okl
