// SPDX-License-Identifier: Apache-2.0
// Class exact: rows are quantised to s8 (or come so), products are exact integers, and each block of inputs is folded in fp32.
#pragma once

#include <array>

#include "kernels/gemm/exact_kernel.h"
#include "kernels/linear/linear_plan.h"
#include "kernels/quantize/quantize.h"

namespace okl {

// The workspace: s8 rows, the sums of their blocks, what accumulators start with, scales.
struct ExactWorkspace {
  size_t row_bytes;  // of one s8 row, a multiple of 64
  size_t sum_bytes;  // of the block sums of one row

  explicit ExactWorkspace(const ExactConfig& config)
      : row_bytes(static_cast<size_t>(config.row_bytes())), sum_bytes(static_cast<size_t>(config.blocks()) * 4) {}
  size_t sums(uint32_t m) const { return row_bytes * m; }
  size_t starts(uint32_t m) const { return sums(m) + sum_bytes * m; }
  size_t scales(uint32_t m) const { return starts(m) + 2 * sum_bytes * m; }
  size_t total(uint32_t m) const { return (scales(m) + size_t{4} * m + 63) / 64 * 64; }
};

// The code of one registry row for one query: a path by a block kind (full or tail).
class ExactCodeSet {
 public:
  // False when executable memory was refused.
  bool make(const KernelRow& row, const ExactConfig& base, int64_t n, uint32_t max_m);

  struct Entry {
    ExactConfig config{};
    ExactTileFn run = nullptr;
  };
  const ExactKernel& kernel() const { return *kernel_; }
  ExactPath path_for(uint32_t rows) const {
    return has_panel_ && rows >= kernel_->panel_from ? ExactPath::kPanel : ExactPath::kDirect;
  }
  const Entry& entry(ExactPath path, bool tail) const { return entries_[static_cast<size_t>(path)][tail ? 1 : 0]; }
  size_t code_bytes() const { return code_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  const ExactKernel* kernel_ = nullptr;
  bool has_panel_ = false;
  size_t code_bytes_ = 0, scratch_bytes_ = 0;
  std::array<std::array<Entry, 2>, 2> entries_;
};

class ExactPlan : public LinearPlan {
 public:
  explicit ExactPlan(LinearFacts query);

  uint32_t row_units(uint32_t m) const override { return m; }
  size_t prepared_bytes(uint32_t m) const override { return ExactWorkspace(config_).total(m); }
  size_t scratch_bytes(uint32_t m) const override { return code_for(m).scratch_bytes(); }
  void prepare(const omni_linear_args& args, uint32_t first_row, uint32_t last_row) const override;
  void compute(const omni_linear_args& args, uint32_t first_row, uint32_t last_row, int64_t n0, int64_t n1,
               void* scratch) const override;

  const ExactConfig& config() const { return config_; }
  const ExactCodeSet& code_for(uint32_t m) const { return m == 1 ? one_ : many_; }

 protected:
  omni_status check_facts() const override;
  omni_dtype kernel_activation() const override { return OMNI_DTYPE_S8; }
  bool adopt(const KernelRow& row, bool many) override;
  size_t code_bytes() const override { return one_.code_bytes() + many_.code_bytes(); }

 private:
  ExactConfig config_;                    // rows, block_width and path are 0
  QuantizeRowFn quantize_row_ = nullptr;  // of x that is not S8
  ExactCodeSet one_;                      // runs of one row
  ExactCodeSet many_;                     // runs of more
};

}  // namespace okl
