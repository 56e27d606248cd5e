// SPDX-License-Identifier: Apache-2.0
// The entries of omni/gather.h.
#include "omni/gather.h"

#include <cinttypes>
#include <cmath>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/format/blocks64.h"
#include "kernels/format/format.h"
#include "kernels/format/tg4.h"
#include "kernels/gather/gather_kernel.h"

namespace okl {
namespace {

struct GatherPlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kGather;

  GatherPlan() : RowPlan(kKind) {}
  void describe(omni_plan_info* out) const override {
    RowPlan::describe(out);
    if (!is_plain()) out->weights = table;
  }

  bool is_plain() const { return table_kind == TableKind::kPlainBf16 || table_kind == TableKind::kPlainF32; }
  bool has_scales() const { return table_kind == TableKind::kTg4 || table_kind == TableKind::kW8s; }
  uint16_t plain_type() const { return table_kind == TableKind::kPlainF32 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16; }

  omni_layout table{};  // plain: n and k only
  TableKind table_kind = TableKind::kTg4;
  uint16_t out_type = OMNI_DTYPE_NONE;
  float multiplier = 1.0F;
  GatherFn run = nullptr;
};

omni_status kind_of(const omni_gather_query& query, TableKind* kind) {
  if (query.plain_type != OMNI_DTYPE_NONE) {
    if (!is_float_type(query.plain_type)) return fail(OMNI_ERR_TYPE, "plain_type %u is neither bf16 nor f32", query.plain_type);
    *kind = query.plain_type == OMNI_DTYPE_F32 ? TableKind::kPlainF32 : TableKind::kPlainBf16;
    if (query.table.n < 0) return fail(OMNI_ERR_SHAPE, "table.n is %" PRId64, query.table.n);
    if (query.table.k < 0) return fail(OMNI_ERR_SHAPE, "table.k is %" PRId64, query.table.k);
    return OMNI_OK;
  }
  if (omni_status status = check_layout(query.table, "table"); status != OMNI_OK) return status;
  switch (query.table.format) {
    case OMNI_FORMAT_TG4:
      *kind = TableKind::kTg4;
      return OMNI_OK;
    case OMNI_FORMAT_W8S:
      *kind = TableKind::kW8s;
      return OMNI_OK;
    case OMNI_FORMAT_W16:
      *kind = TableKind::kW16;
      return OMNI_OK;
    case OMNI_FORMAT_W32:
      *kind = TableKind::kW32;
      return OMNI_OK;
    default:
      return fail(OMNI_ERR_LAYOUT, "table is %s: gather takes tg4, w8s, w16, w32 and plain arrays",
                  std::string(format_name(static_cast<omni_format>(query.table.format))).c_str());
  }
}

omni_status check_query(const omni_gather_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_gather_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.out_type)) return fail(OMNI_ERR_TYPE, "out_type %u is neither bf16 nor f32", query.out_type);
  if (!std::isfinite(query.multiplier)) return fail(OMNI_ERR_RANGE, "multiplier is %g", static_cast<double>(query.multiplier));
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  return OMNI_OK;
}

omni_status check_bytes(const char* name, size_t given, int64_t needed) {
  if (given >= static_cast<size_t>(needed)) return OMNI_OK;
  return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %" PRId64 " are needed", name, given, needed);
}

omni_status check_plain(const GatherPlan& plan, const omni_gather_args& args) {
  const int64_t ld = args.ld_table == 0 ? plan.table.k : args.ld_table;
  omni_status status = check_rows("table", args.table, plan.plain_type(), plan.table.n, plan.table.k, ld);
  if (status != OMNI_OK || plan.table.n == 0) return status;
  return check_bytes("table", args.table_bytes,
                     dense_offset(plan.table.n - 1, ld, plan.table.k) * static_cast<int64_t>(type_bytes(plan.plain_type())));
}

omni_status check_packed(const GatherPlan& plan, const omni_gather_args& args) {
  const omni_layout& table = plan.table;
  int64_t bytes = 0, scales = 0;
  if (!codes_bytes(static_cast<omni_format>(table.format), table.n, table.k, 0, &bytes) || !layout_scales_bytes(table, &scales)) {
    return fail(OMNI_ERR_OVERFLOW, "table does not fit 63 bits");
  }
  omni_status status = check_array("table", args.table, tg4::kAlignment);
  if (status == OMNI_OK) status = check_bytes("table", args.table_bytes, bytes);
  if (status != OMNI_OK || !plan.has_scales()) return status;
  status = check_array("scales", args.scales, type_bytes(table.scale_type));
  return status == OMNI_OK ? check_bytes("scales", args.scales_bytes, scales) : status;
}

int64_t id_at(const omni_gather_args& args, int64_t index) {
  return args.id_bytes == 8 ? static_cast<const int64_t*>(args.ids)[index] : static_cast<const int32_t*>(args.ids)[index];
}

omni_status check_ids(const GatherPlan& plan, const omni_gather_args& args) {
  if (args.id_bytes != 4 && args.id_bytes != 8) return fail(OMNI_ERR_TYPE, "id_bytes is %u, neither 4 nor 8", args.id_bytes);
  if (omni_status status = check_array("ids", args.ids, args.id_bytes); status != OMNI_OK) return status;
  for (int64_t i = 0; i < args.count; ++i) {
    const int64_t id = id_at(args, i);
    if (id < 0 || id >= plan.table.n) {
      return fail(OMNI_ERR_RANGE, "ids[%" PRId64 "] is %" PRId64 ", the table has %" PRId64 " rows", i, id, plan.table.n);
    }
  }
  return OMNI_OK;
}

// Where row `id` begins in a packed table, and how its inputs follow each other.
void aim(const GatherPlan& plan, const uint8_t* table, int64_t id, GatherRow* row) {
  const int64_t n = plan.table.n, k = plan.table.k, block = id / tg4::kBlock, channel = id % tg4::kBlock;
  if (plan.table_kind == TableKind::kTg4) {
    const int64_t width = tg4::block_width(n, block);
    const tg4::Position at = tg4::position_in_run(width, channel);
    row->data = table + tg4::block_offset(n, k, block) + at.byte;
    row->stride = width / 2;
    row->shift = at.shift;
    return;
  }
  const Blocks64& format = plan.table_kind == TableKind::kW8s ? kW8s : plan.table_kind == TableKind::kW16 ? kW16 : kW32;
  row->data = table + format.block_offset(n, k, block) + channel * 4;  // every element of a register is a dword
  row->stride = format.block_width(n, block) * 4;
}

void gather_row(const GatherPlan& plan, const omni_gather_args& args, int64_t index) {
  const int64_t id = id_at(args, index);
  const auto* const table = static_cast<const uint8_t*>(args.table);
  GatherRow row{};
  if (plan.is_plain()) {
    const int64_t ld = args.ld_table == 0 ? plan.table.k : args.ld_table;
    row.data = table + id * ld * static_cast<int64_t>(type_bytes(plan.plain_type()));
  } else {
    aim(plan, table, id, &row);
  }
  if (plan.has_scales()) {
    const int64_t element = static_cast<int64_t>(type_bytes(plan.table.scale_type)) * (plan.table_kind == TableKind::kTg4 ? 2 : 1);
    row.scales = static_cast<const uint8_t*>(args.scales) + id * element;
    row.scale_stride = plan.table.n * element;
    row.group = plan.table.group;
  }
  row.k = plan.table.k;
  row.multiplier = plan.multiplier;
  row.out = static_cast<uint8_t*>(args.out) + index * args.ld_out * static_cast<int64_t>(type_bytes(plan.out_type));
  plan.run(&row);
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_gather_select(const omni_gather_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<GatherPlan>();
    if (omni_status status = kind_of(*query, &made->table_kind); status != OMNI_OK) return status;
    if (omni_status status = made->choose(Op::kGather, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->table = query->table;
    made->out_type = query->out_type;
    made->multiplier = query->multiplier == 0.0F ? 1.0F : query->multiplier;
    made->run = made->row->as<Op::kGather>().function(made->table_kind, query->table.scale_type, query->out_type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_gather_run(const omni_plan* handle, const omni_gather_args* args) {
  omni_status status;
  const auto* plan = plan_as<GatherPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->count < 0) return fail(OMNI_ERR_SHAPE, "count is %" PRId64, args->count);
  if (args->reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", args->reserved);
  if (args->count == 0) return succeed();
  if (status = check_ids(*plan, *args); status != OMNI_OK) return status;
  if (status = plan->is_plain() ? check_plain(*plan, *args) : check_packed(*plan, *args); status != OMNI_OK) return status;
  if (status = check_rows("out", args->out, plan->out_type, args->count, plan->table.k, args->ld_out); status != OMNI_OK)
    return status;
  return run_rows(args->parallel, args->count, plan->table.k, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) gather_row(*plan, *args, i);
  });
}

}  // extern "C"
