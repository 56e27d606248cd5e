// SPDX-License-Identifier: Apache-2.0
// The driver of the linear kernels: a plan holds the code for every tile, a run cuts rows and channels into calls.
#pragma once

#include <array>
#include <string>

#include "kernels/gemv/linear_kernel.h"
#include "kernels/gemv/prepare.h"

namespace okl {

inline constexpr uint32_t kMostRows = 16;  // of one run
inline constexpr int kMostTileRows = 16;   // of one kernel call

// The generated code of one registry row for one configuration: a tile size by a block kind (full or tail).
class LinearCodeSet {
 public:
  // Makes the code for every tile size that up to max_m rows can need. False when executable memory was refused.
  bool make(const KernelRow& row, const LinearConfig& base, int64_t n, uint32_t max_m);

  const KernelRow& row() const { return *row_; }
  const LinearKernel& kernel() const { return row_->as<Op::kGemm>(); }
  uint32_t max_rows() const { return kernel().max_rows < row_->mr ? kernel().max_rows : row_->mr; }
  size_t code_bytes() const { return code_bytes_; }

  struct Entry {
    LinearConfig config{};
    LinearTileFn run = nullptr;
  };
  const Entry& entry(uint32_t rows, bool tail) const { return entries_[rows][tail ? 1 : 0]; }

 private:
  const KernelRow* row_ = nullptr;
  size_t code_bytes_ = 0;
  std::array<std::array<Entry, 2>, kMostTileRows + 1> entries_;
};

}  // namespace okl

// The opaque handle. Immutable after omni_select().
struct omni_plan {
  omni_layout weights;
  okl::LinearConfig config;  // rows and block_width are 0
  uint32_t max_m;
  omni_dtype x_type;
  okl::LinearCodeSet one;   // runs of one row
  okl::LinearCodeSet many;  // runs of more; equal to `one` where the same row serves
  std::string reason_one, reason_many;
  std::string not_runnable;  // why the hardware cannot run it (a profile was emulated), "" when it can
  const char* code_state;    // omni_plan_info::code

  const okl::LinearCodeSet& code_for(uint32_t m) const { return m == 1 ? one : many; }
};

namespace okl {

// Both take checked arguments. The workspace holds prepared rows when run_channels() runs.
void prepare_linear(const omni_plan& plan, const omni_linear_args& args);
// Channels [n0, n1), any split.
void run_channels(const omni_plan& plan, const omni_linear_args& args, int64_t n0, int64_t n1);
// All channels on `parallel`, about four blocks for each thread.
void run_parallel(const omni_plan& plan, const omni_linear_args& args, const omni_parallel& parallel);

}  // namespace okl
