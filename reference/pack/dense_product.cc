// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/dense_product.h"

#include <algorithm>
#include <memory>

#include "omni/omni.hpp"
#include "reference/core/parallel.h"

namespace ref {
namespace {

constexpr int64_t kTile = 32;

struct DestroyPlan {
  void operator()(omni_plan* plan) const { omni_plan_destroy(plan); }
};
using Plan = std::unique_ptr<omni_plan, DestroyPlan>;

Plan select(const omni_layout& weights, int64_t rows, const omni_parallel* parallel) {
  auto query = omni::sized<omni_linear_query>();
  query.numerics = OMNI_NUMERICS_DENSE;
  query.x_type = query.y_type = query.residual_type = OMNI_DTYPE_F32;
  query.epilogue = OMNI_EPILOGUE_RESIDUAL;
  query.max_m = static_cast<uint32_t>(rows);
  query.max_threads = parallel == nullptr ? 0 : parallel->threads;
  query.weights = weights;
  omni_plan* plan = nullptr;
  omni::check(omni_select(&query, &plan));
  return Plan(plan);
}

// Grown as needed and kept: large pages are cleared when they are granted, which would take longer than a small product.
omni::PackedMemory& at_least(omni::PackedMemory* memory, size_t bytes) {
  if (memory->size() < bytes) *memory = omni::PackedMemory(bytes);
  return *memory;
}

void pack(const MatrixView& matrix, int64_t depth, const omni_layout& layout, const omni::PackedMemory& memory,
          const omni_parallel* parallel) {
  auto args = omni::sized<omni_pack_dense_args>();
  args.source_type = OMNI_DTYPE_F32;
  args.layout = layout;
  args.source = matrix.data;
  args.source_bytes = static_cast<size_t>((matrix.rows - 1) * matrix.ld + depth) * sizeof(float);
  args.source_ld = matrix.ld;
  args.out = memory.data();
  args.out_bytes = memory.size();
  args.parallel = parallel;
  omni::check(omni_pack_dense(&args, nullptr));
}

}  // namespace

void add_product(const MatrixView& a, const MatrixView& b, int64_t depth, float* y, int64_t ld, const omni_parallel* parallel) {
  const omni_layout layout = omni::make_layout(OMNI_FORMAT_W32, b.rows, depth, static_cast<uint32_t>(depth), OMNI_DTYPE_NONE);
  thread_local omni::PackedMemory packed, scratch;
  const omni::PackedMemory& weights = at_least(&packed, omni::packed_size(layout));
  pack(b, depth, layout, weights, parallel);
  const Plan plan = select(layout, a.rows, parallel);
  size_t workspace_bytes = 0;
  omni::check(omni_workspace_size(plan.get(), static_cast<uint32_t>(a.rows), &workspace_bytes));
  const omni::PackedMemory& workspace = at_least(&scratch, workspace_bytes);
  auto args = omni::sized<omni_linear_args>();
  args.m = static_cast<uint32_t>(a.rows);
  args.x = a.data;
  args.ldx = a.ld;
  args.codes = weights.data();
  args.codes_bytes = weights.size();
  args.residual = args.y = y;
  args.ld_residual = args.ldy = ld;
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = parallel;
  omni::check(omni_run(plan.get(), &args));
}

void transpose(const float* in, int64_t rows, int64_t columns, int64_t ld, float sign, float* out, const omni_parallel* parallel) {
  parallel_for(parallel, (columns + kTile - 1) / kTile, [&](int64_t tile) {
    const int64_t c0 = tile * kTile, c1 = std::min(columns, c0 + kTile);
    for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
      const int64_t r1 = std::min(rows, r0 + kTile);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) out[c * rows + r] = sign * in[r * ld + c];
      }
    }
  });
}

}  // namespace ref
