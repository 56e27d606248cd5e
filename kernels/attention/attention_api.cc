// SPDX-License-Identifier: Apache-2.0
// The entries of omni/attention.h that take a plan: checks, then the driver.
#include <cinttypes>
#include <cmath>
#include <memory>
#include <new>

#include "kernels/attention/attention_plan.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/rows.h"
#include "kernels/format/checked.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

constexpr uint32_t kMostHeads = 1U << 16;
constexpr int64_t kMostPosition = INT64_MAX / 4;
// Rows below which an append is done before another thread has woken up.
constexpr uint32_t kSerialAppend = 8;

bool misaligned(const void* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment != 0; }
bool is_real(uint16_t type) { return type == OMNI_DTYPE_BF16 || type == OMNI_DTYPE_F32; }
int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

omni_status check_query(const omni_attention_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_attention_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_real(query.cache_type) && query.cache_type != OMNI_DTYPE_S8) {
    return fail(OMNI_ERR_TYPE, "cache_type %u is neither bf16, f32 nor s8", query.cache_type);
  }
  if (!is_real(query.q_type)) return fail(OMNI_ERR_TYPE, "q_type %u is neither bf16 nor f32", query.q_type);
  if (!is_real(query.kv_type)) return fail(OMNI_ERR_TYPE, "kv_type %u is neither bf16 nor f32", query.kv_type);
  if (!is_real(query.out_type)) return fail(OMNI_ERR_TYPE, "out_type %u is neither bf16 nor f32", query.out_type);
  if (query.kv_heads < 1 || query.kv_heads > kMostHeads) {
    return fail(OMNI_ERR_SHAPE, "kv_heads %u is outside 1..%u", query.kv_heads, kMostHeads);
  }
  if (query.heads < 1 || query.heads > kMostHeads || query.heads % query.kv_heads != 0) {
    return fail(OMNI_ERR_SHAPE, "heads %u is no multiple of kv_heads %u, or above %u", query.heads, query.kv_heads, kMostHeads);
  }
  if (query.head_dim < 8 || query.head_dim > OMNI_ATTENTION_MOST_HEAD_DIM || query.head_dim % 8 != 0) {
    return fail(OMNI_ERR_SHAPE, "head_dim %u is no multiple of 8 in 8..%d", query.head_dim, OMNI_ATTENTION_MOST_HEAD_DIM);
  }
  if (query.max_m < 1 || query.max_m > OMNI_ATTENTION_MOST_ROWS) {
    return fail(OMNI_ERR_SHAPE, "max_m %u is outside 1..%u", query.max_m, OMNI_ATTENTION_MOST_ROWS);
  }
  if (query.max_threads > kMostThreads) return fail(OMNI_ERR_RANGE, "max_threads %u is above %u", query.max_threads, kMostThreads);
  if (query.window < 0) return fail(OMNI_ERR_SHAPE, "window %" PRId64 " is negative", query.window);
  if (!std::isfinite(query.scale)) return fail(OMNI_ERR_RANGE, "scale is not finite");
  return OMNI_OK;
}

omni_status choose(const omni_attention_query& query, AttentionPlan* plan) {
  IsaMask allowed = current_machine().isa;
  if (query.max_isa != nullptr && query.max_isa[0] != '\0') {
    const std::optional<IsaMask> cap = tier_mask(query.max_isa);
    if (!cap) return fail(OMNI_ERR_UNKNOWN_NAME, "max_isa \"%.80s\" is no tier", query.max_isa);
    allowed &= *cap;
  }
  const auto accept = [&](const KernelRow& row) { return row.activation == query.cache_type; };
  RowChoice choice;
  if (query.kernel != nullptr && query.kernel[0] != '\0') {
    if (find_kernel(query.kernel) == nullptr) {
      return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%.80s\" is in no registry row", query.kernel);
    }
    choice = choose_row(Op::kAttention, allowed, query.kernel, accept);
    if (choice.row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "kernel \"%.80s\" cannot serve this query", query.kernel);
    plan->reason = "asked for by name";
  }
  const std::string forced = settings().kernel;
  if (choice.row == nullptr && !forced.empty()) {
    choice = choose_row(Op::kAttention, allowed, forced, accept);
    plan->reason = "asked for by OMNI_KERNEL";
  }
  if (choice.row == nullptr) {
    choice = choose_row(Op::kAttention, allowed, {}, accept);
    plan->reason = "first row for this cache type that the machine can run";
  }
  if (choice.row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "no attention kernel serves this machine");
  plan->row = choice.row;
  plan->kernel = &choice.row->as<Op::kAttention>();
  if (const IsaMask missing = choice.row->required & ~hardware_isa(); missing != 0) {
    plan->not_runnable = std::string(choice.row->name) + " needs " + isa_to_text(missing) + ", which this processor lacks";
  }
  trace("dispatch: attention head_dim=%u -> %s (%s)", query.head_dim, choice.row->name.data(), plan->reason.c_str());
  return OMNI_OK;
}

omni_status check_plan(const AttentionPlan* plan) {
  return plan->not_runnable.empty() ? OMNI_OK : fail(OMNI_ERR_NO_KERNEL, "%s", plan->not_runnable.c_str());
}

// The cache is sound and of the plan's shape.
omni_status check_cache_of(const AttentionPlan& plan, const omni_kv_cache* cache) {
  if (const omni_status status = check_cache(cache); status != OMNI_OK) return status;
  if (cache->type != plan.query.cache_type) {
    return fail(OMNI_ERR_TYPE, "cache.type is %u and the plan's cache_type %u", cache->type, plan.query.cache_type);
  }
  if (cache->kv_heads != plan.query.kv_heads || cache->head_dim != plan.query.head_dim) {
    return fail(OMNI_ERR_SHAPE, "cache has %u heads of %u and the plan %u of %u", cache->kv_heads, cache->head_dim,
                plan.query.kv_heads, plan.query.head_dim);
  }
  return OMNI_OK;
}

// A matrix of `rows` rows of `heads` heads.
omni_status check_matrix(const char* name, const void* data, int64_t ld, uint16_t type, uint32_t rows, int64_t heads, int64_t dim) {
  if (ld < heads * dim) return fail(OMNI_ERR_STRIDE, "ld of %s is %" PRId64 ", below %" PRId64, name, ld, heads * dim);
  if (int64_t bytes; !checked_product({int64_t{rows}, ld, element_bytes(type)}, &bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "ld of %s = %" PRId64 " times %u rows does not fit", name, ld, rows);
  }
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (misaligned(data, static_cast<size_t>(element_bytes(type)))) {
    return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to its element", name);
  }
  return OMNI_OK;
}

omni_status check_position(int64_t position) {
  if (position >= 0 && position <= kMostPosition) return OMNI_OK;
  return fail(OMNI_ERR_RANGE, "position %" PRId64 " is outside 0..%" PRId64, position, kMostPosition);
}

// The first key that a row at `position` sees.
int64_t first_seen(const omni_attention_query& query, int64_t position) {
  return query.window == 0 || query.window > position ? 0 : position - query.window + 1;
}

omni_status check_append(const AttentionPlan& plan, const omni_attention_append_args& args) {
  const omni_attention_query& query = plan.query;
  const omni_kv_cache& cache = *args.cache;
  if (args.rows > OMNI_ATTENTION_MOST_ROWS) {
    return fail(OMNI_ERR_SHAPE, "rows %u is above %u", args.rows, OMNI_ATTENTION_MOST_ROWS);
  }
  if (const omni_status status = check_position(args.position); status != OMNI_OK) return status;
  const bool empty = cache.begin == cache.end;
  if (!empty && (args.position < cache.begin || args.position > cache.end)) {
    return fail(OMNI_ERR_RANGE, "position %" PRId64 " is outside [%" PRId64 ", %" PRId64 "] of the cache", args.position,
                cache.begin, cache.end);
  }
  const int64_t end = args.position + args.rows, seen = first_seen(query, args.position);
  if (args.rows > cache.capacity || end - cache.capacity > seen) {
    if (query.window == 0) {
      return fail(OMNI_ERR_BUFFER_SIZE, "cache.capacity %" PRId64 " is below the %" PRId64 " positions that are all seen",
                  cache.capacity, end);
    }
    return fail(OMNI_ERR_BUFFER_SIZE,
                "cache.capacity %" PRId64 ": a window of %" PRId64 " and %u rows at once need a ring of %" PRId64, cache.capacity,
                query.window, args.rows, ceil_div(std::min(query.window, kMostPosition) - 1 + args.rows, kBlockKeys) * kBlockKeys);
  }
  const int64_t heads = query.kv_heads, dim = query.head_dim;
  if (const omni_status status = check_matrix("k", args.k, args.ldk, query.kv_type, args.rows, heads, dim); status != OMNI_OK) {
    return status;
  }
  return check_matrix("v", args.v, args.ldv, query.kv_type, args.rows, heads, dim);
}

// Rows into the blocks [first, last) counted from the block of the first row; item = (block, head), heads fastest.
void append_items(const AttentionPlan& plan, const omni_attention_append_args& args, int64_t first, int64_t last) {
  const omni_attention_query& query = plan.query;
  const omni_kv_cache& cache = *args.cache;
  const int64_t element = element_bytes(query.kv_type), record = record_bytes(cache.type, cache.head_dim);
  for (int64_t item = first; item < last; ++item) {
    const int64_t head = item % query.kv_heads, block = args.position / kBlockKeys + item / query.kv_heads;
    const int64_t begin = std::max(args.position, block * kBlockKeys);
    const int64_t end = std::min(args.position + args.rows, (block + 1) * kBlockKeys);
    const int64_t row = begin - args.position, column = head * query.head_dim * element;
    AttentionAppend call;
    call.ldk = args.ldk * element;
    call.ldv = args.ldv * element;
    call.k = static_cast<const uint8_t*>(args.k) + row * call.ldk + column;
    call.v = static_cast<const uint8_t*>(args.v) + row * call.ldv + column;
    call.record = static_cast<uint8_t*>(cache.data) + (block % (cache.capacity / kBlockKeys) * query.kv_heads + head) * record;
    call.head_dim = static_cast<int32_t>(query.head_dim);
    call.first_slot = static_cast<int32_t>(begin % kBlockKeys);
    call.rows = static_cast<int32_t>(end - begin);
    call.kv_type = query.kv_type;
    plan.kernel->append(&call);
  }
}

omni_status check_run(const AttentionPlan& plan, const omni_attention_args& args) {
  const omni_attention_query& query = plan.query;
  if (args.m > query.max_m) return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", args.m, query.max_m);
  if (const omni_status status = check_cache_of(plan, args.cache); status != OMNI_OK) return status;
  if (const omni_status status = check_position(args.position); status != OMNI_OK) return status;
  const int64_t first = first_seen(query, args.position), end = args.position + args.m;
  if (first < args.cache->begin || end > args.cache->end) {
    return fail(OMNI_ERR_RANGE,
                "rows at [%" PRId64 ", %" PRId64 ") see keys from %" PRId64 " on; the cache holds [%" PRId64 ", %" PRId64 ")",
                args.position, end, first, args.cache->begin, args.cache->end);
  }
  const int64_t heads = query.heads, dim = query.head_dim;
  if (const omni_status status = check_matrix("q", args.q, args.ldq, query.q_type, args.m, heads, dim); status != OMNI_OK) {
    return status;
  }
  if (const omni_status status = check_matrix("out", args.out, args.ld_out, query.out_type, args.m, heads, dim);
      status != OMNI_OK) {
    return status;
  }
  const size_t needed = static_cast<size_t>(plan.cut(args.m).workspace_floats) * sizeof(float);
  if (args.workspace == nullptr) return fail(OMNI_ERR_NULL, "workspace is NULL");
  if (misaligned(args.workspace, 64)) return fail(OMNI_ERR_ALIGNMENT, "workspace is not aligned to 64 bytes");
  if (args.workspace_bytes < needed) {
    return fail(OMNI_ERR_BUFFER_SIZE, "workspace_bytes %zu, needs %zu for %u rows", args.workspace_bytes, needed, args.m);
  }
  return OMNI_OK;
}

}  // namespace

AttentionPlan::AttentionPlan(const omni_attention_query& from) : omni_plan(kKind), query(from), group(from.heads / from.kv_heads) {
  query.kernel = query.max_isa = nullptr;
  if (query.max_threads == 0) query.max_threads = omni_num_threads();
  if (query.scale == 0.0F) query.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(query.head_dim)));
}

void AttentionPlan::describe(omni_plan_info* out) const {
  out->isa_required = row->required;
  out->kernel = row->name.data();
  out->reason = reason.c_str();
  out->code = "compiled";
}

}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_attention_select(const omni_attention_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (const omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (const omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<AttentionPlan>(*query);
    if (const omni_status status = choose(*query, made.get()); status != OMNI_OK) return status;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_attention_append(const omni_plan* handle, const omni_attention_append_args* args) {
  omni_status status;
  const auto* plan = plan_as<AttentionPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (args->size < sizeof *args) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_attention_append_args.size is %u, needs %zu", args->size, sizeof *args);
  }
  if (status = check_plan(plan); status != OMNI_OK) return status;
  if (status = check_cache_of(*plan, args->cache); status != OMNI_OK) return status;
  if (args->rows == 0) return succeed();
  if (status = check_append(*plan, *args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  const int64_t blocks = (args->position + args->rows - 1) / kBlockKeys - args->position / kBlockKeys + 1;
  split_evenly(parallel, blocks * plan->query.kv_heads, args->rows < kSerialAppend ? 1 : INT64_MAX,
               [&](int64_t first, int64_t last) { append_items(*plan, *args, first, last); });
  omni_kv_cache& cache = *args->cache;
  if (cache.begin == cache.end) cache.begin = args->position;
  cache.end = args->position + args->rows;
  cache.begin = std::max(cache.begin, cache.end - cache.capacity);
  return succeed();
}

omni_status omni_attention_workspace_size(const omni_plan* handle, uint32_t m, size_t* bytes) {
  omni_status status;
  const auto* plan = plan_as<AttentionPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (bytes == nullptr) return fail(OMNI_ERR_NULL, "bytes is NULL");
  if (m > plan->query.max_m) return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", m, plan->query.max_m);
  *bytes = m == 0 ? 0 : static_cast<size_t>(plan->cut(m).workspace_floats) * sizeof(float);
  return succeed();
}

omni_status omni_attention_run(const omni_plan* handle, const omni_attention_args* args) {
  omni_status status;
  const auto* plan = plan_as<AttentionPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (args->size < sizeof *args) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_attention_args.size is %u, needs %zu", args->size, sizeof *args);
  }
  if (status = check_plan(plan); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_run(*plan, *args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  run_attention(*plan, *args, parallel);
  return succeed();
}

}  // extern "C"
