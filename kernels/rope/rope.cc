// SPDX-License-Identifier: Apache-2.0
// The rotation entries of omni/rope.h.
#include "omni/rope.h"

#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/rope/rope_kernel.h"

namespace okl {
namespace {

struct RopePlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kRope;

  RopePlan() : RowPlan(kKind) {}
  int64_t width() const { return heads * head_dim; }

  uint16_t type = OMNI_DTYPE_NONE;
  int64_t heads = 0, head_dim = 0, rot = 0;
  RopeRowFn run = nullptr;
};

omni_status check_query(const omni_rope_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_rope_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.type)) return fail(OMNI_ERR_TYPE, "type %u is neither bf16 nor f32", query.type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.heads < 1) return fail(OMNI_ERR_SHAPE, "heads is 0");
  if (query.rot < 2 || query.rot % 2 != 0 || query.rot > query.head_dim) {
    return fail(OMNI_ERR_SHAPE, "rot is %u, must be even and in 2..head_dim = %u", query.rot, query.head_dim);
  }
  return OMNI_OK;
}

omni_status check_table(const RopePlan& plan, const omni_rope_args& args) {
  if (args.p0 < 0 || args.p1 <= args.p0 || args.p1 > OMNI_ROPE_MOST_POSITIONS) {
    return fail(OMNI_ERR_RANGE, "the table's positions [%lld, %lld) are empty or outside of [0, %lld)",
                static_cast<long long>(args.p0), static_cast<long long>(args.p1), static_cast<long long>(OMNI_ROPE_MOST_POSITIONS));
  }
  int64_t needed = 0;
  if (!checked_product({args.p1 - args.p0, plan.rot, 4}, &needed)) return fail(OMNI_ERR_OVERFLOW, "the table does not fit");
  if (args.table_bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "table_bytes is %zu, needs %lld", args.table_bytes, static_cast<long long>(needed));
  }
  return check_array("table", args.table, sizeof(float));
}

omni_status check_positions(const omni_rope_args& args) {
  if (omni_status status = check_array("positions", args.positions, sizeof(int32_t)); status != OMNI_OK) return status;
  for (uint32_t r = 0; r < args.m; ++r) {
    if (args.positions[r] < args.p0 || args.positions[r] >= args.p1) {
      return fail(OMNI_ERR_RANGE, "positions[%u] is %d, outside of the table's [%lld, %lld)", r, args.positions[r],
                  static_cast<long long>(args.p0), static_cast<long long>(args.p1));
    }
  }
  return OMNI_OK;
}

void run_part(const RopePlan& plan, const omni_rope_args& args, int64_t first, int64_t last) {
  const auto* table = static_cast<const float*>(args.table);
  const int64_t row_bytes = args.ldx * static_cast<int64_t>(type_bytes(plan.type)), half = plan.rot / 2;
  for (int64_t r = first; r < last; ++r) {
    const float* cos = table + (args.positions[r] - args.p0) * plan.rot;
    const RopeRow row = {static_cast<uint8_t*>(args.x) + r * row_bytes, cos, cos + half, plan.heads, plan.head_dim, half};
    plan.run(&row);
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_rope_select(const omni_rope_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<RopePlan>();
    if (omni_status status = made->choose(Op::kRope, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->type = query->type;
    made->heads = query->heads;
    made->head_dim = query->head_dim;
    made->rot = query->rot;
    const RopeKernel& kernel = made->row->as<Op::kRope>();
    made->run = query->type == OMNI_DTYPE_F32 ? kernel.f32 : kernel.bf16;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_rope_run(const omni_plan* handle, const omni_rope_args* args) {
  omni_status status;
  const auto* plan = plan_as<RopePlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  status = check_rows("x", args->x, plan->type, args->m, plan->width(), args->ldx);
  if (status == OMNI_OK) status = check_table(*plan, *args);
  if (status == OMNI_OK) status = check_positions(*args);
  if (status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->heads * plan->rot,
                  [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
