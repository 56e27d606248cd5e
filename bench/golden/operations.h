// SPDX-License-Identifier: Apache-2.0
// The library's operations as verification calls them: with a kernel forced by name, on a given pool, into poisoned memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/golden/compare.h"
#include "omni/omni.hpp"

namespace omnibench {

/// A registry row that concerns a check.
struct Row {
  std::string name, tier;
  bool usable = false;
};

/// What one run of the program works with.
struct Session {
  bool exhaustive = false;
  std::vector<std::unique_ptr<omni::Pool>> pools;  ///< at least one

  [[nodiscard]] const omni::Pool& first_pool() const { return *pools.front(); }
};

/// Rows of "pack" or "dequant".
std::vector<Row> rows_of(const std::string& op);
struct LinearProblem;
/// Rows that compute a problem: "gemm" rows for any number of rows of x, "gemv" rows for one.
std::vector<Row> linear_rows_of(const std::string& op, const LinearProblem& problem);
/// Throws NotRun when this machine lacks what the row needs.
void require_usable(const Row& row);

/// Memory aligned as kernels like it best, filled with a pattern that is no result.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes) : memory_(bytes + 1) { poison(); }
  template <typename T>
  explicit Buffer(std::span<const T> values) : Buffer(values.size_bytes()) {
    if (!values.empty()) std::memcpy(memory_.data(), values.data(), values.size_bytes());
  }
  void poison() { std::memset(memory_.data(), 0xEE, memory_.size()); }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.data()); }
  [[nodiscard]] size_t size() const { return memory_.size() == 0 ? 0 : memory_.size() - 1; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data(), size()}; }

 private:
  omni::PackedMemory memory_ = {};
};

/// omni_repack with the pack kernel `kernel`; throws NotRun when another one served. "" leaves the choice to the library.
void repack(omni_repack_args args, const std::string& kernel);

struct Weights {
  omni_layout layout{};
  const Buffer* codes = nullptr;
  const Buffer* scales = nullptr;
};

/// The whole matrix to bf16 into `out`, N * K elements.
void dequantize(const Weights& weights, omni_order order, const std::string& kernel, const omni::Pool& pool, Buffer* out);

/// y = x * W^T for golden data.
struct LinearProblem {
  Weights weights;
  omni_numerics numerics = OMNI_NUMERICS_GROUP;
  omni_dtype x_type = OMNI_DTYPE_BF16, y_type = OMNI_DTYPE_F32;
  std::vector<std::byte> x;     ///< [rows][K]
  std::vector<float> x_scales;  ///< [rows] with x_type S8
  std::vector<float> bias;      ///< [N], or empty
  int64_t rows = 0;
  const int32_t* k_permutation = nullptr;

  [[nodiscard]] int64_t n() const { return weights.layout.n; }
  [[nodiscard]] int64_t k() const { return weights.layout.k; }
};

/// One kernel on one problem. Every run computes all rows, in batches of m; the rows are repeated to fill the last batch.
class LinearRun {
 public:
  /// Throws omni::Error; its status is OMNI_ERR_NO_KERNEL when the kernel cannot run here.
  LinearRun(const LinearProblem& problem, const std::string& kernel, uint32_t max_m);

  [[nodiscard]] int64_t rows(uint32_t m) const { return (problem_.rows + m - 1) / m * m; }
  /// [rows(m)][N] of the type of y; valid until the next run.
  const std::byte* run(uint32_t m, const omni::Pool& pool);
  /// The same by omni_prepare() and omni_run_portion() with ragged portions of N.
  const std::byte* run_portions(uint32_t m);

 private:
  omni_linear_args arguments(uint32_t m, int64_t batch, const omni::Pool* pool);

  const LinearProblem& problem_;
  omni::Plan plan_;
  std::vector<std::byte> x_;
  std::vector<float> x_scales_;
  Buffer workspace_, scratch_, y_;
};

/// Says what the rows must be, given those of a first run with m = 1 (of use where the file has digests only), or throws Differs.
using GoldenSource = std::function<GoldenRows(const std::byte* first)>;

struct LinearRange {
  std::vector<uint32_t> ms;  ///< rows in a batch, of "gemm" rows; "gemv" rows take one row of x at a time
  bool portable = true;      ///< the portable tier, too
};

/// Every kernel row that computes the problem: all of `ms` on all pools, then ragged portions of N. One entry for each kernel.
void check_linear(const Session& session, const LinearProblem& problem, const LinearRange& how, const std::string& what,
                  const GoldenSource& golden, FileRecord* record);
/// 1..16.
std::vector<uint32_t> every_m();

}  // namespace omnibench
