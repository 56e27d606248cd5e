// SPDX-License-Identifier: Apache-2.0
// The driver of the attention kernels: cuts a run into units of rows and, where those are few, into segments of keys.
#include <algorithm>
#include <atomic>
#include <limits>

#include "kernels/attention/attention_plan.h"
#include "kernels/format/checked.h"

namespace okl {
namespace {

// Units a thread before rows alone are enough work for all of them.
constexpr int64_t kUnitsPerThread = 4;
// Rows of a unit come in these steps: a full register tile of the widest kernel.
constexpr int64_t kUnitStep = 12;
// States of segments in flight, beyond the least number, may take so much a thread: a decoded row has small states and long
// contexts.
constexpr int64_t kWaveFloats = (int64_t{64} << 10) / 4;

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

struct Run {
  const AttentionPlan& plan;
  const omni_attention_args& args;
  const AttentionCut cut;
  float* workspace;

  int64_t head(int64_t unit) const { return unit % plan.query.kv_heads; }

  AttentionUnit unit(int64_t index) const {
    const int64_t first = index / plan.query.kv_heads * cut.unit_rows;
    AttentionUnit unit;
    unit.first_row = first;
    unit.position = args.position;
    unit.window = plan.query.window;
    unit.rows = static_cast<int32_t>(std::min(cut.unit_rows, cut.rows - first));
    unit.group = static_cast<int32_t>(plan.group);
    unit.head_dim = static_cast<int32_t>(plan.query.head_dim);
    unit.scale = plan.query.scale;
    return unit;
  }

  // Of the first head of a K/V head's group, in elements of a row of q or out.
  int64_t first_element(int64_t unit) const { return head(unit) * plan.group * plan.query.head_dim; }

  void load(int64_t index, float* q) const {
    const int64_t bytes = element_bytes(plan.query.q_type);
    AttentionLoad load;
    load.unit = unit(index);
    load.q = static_cast<const uint8_t*>(args.q) + first_element(index) * bytes;
    load.ldq = args.ldq * bytes;
    load.q_type = plan.query.q_type;
    load.out = q;
    plan.kernel->load(&load);
  }
  void store(int64_t index, const float* total) const {
    const int64_t bytes = element_bytes(plan.query.out_type);
    const AttentionStore store = {unit(index), total, static_cast<uint8_t*>(args.out) + first_element(index) * bytes,
                                  args.ld_out * bytes, plan.query.out_type};
    plan.kernel->store(&store);
  }
  void segment(int64_t index, int64_t segment, const float* q, float* state) const {
    const omni_kv_cache& cache = *args.cache;
    const int64_t record = record_bytes(cache.type, cache.head_dim);
    AttentionSegment call;
    call.unit = unit(index);
    call.q = q;
    call.records = static_cast<const uint8_t*>(cache.data) + head(index) * record;
    call.block_stride = cache.kv_heads * record;
    call.ring_blocks = cache.capacity / kBlockKeys;
    call.first_block = std::max(segment * kSegmentBlocks, call.unit.first_key(0) / kBlockKeys);
    call.last_block = std::min((segment + 1) * kSegmentBlocks, call.unit.last_key(call.unit.rows - 1) / kBlockKeys + 1);
    call.last_block = std::max(call.first_block, call.last_block);
    call.state = state;
    plan.kernel->segment(&call);
  }
  void merge(int64_t index, float* total, const float* part) const {
    AttentionMerge merge;
    merge.rows = unit(index).rows;
    merge.head_dim = static_cast<int32_t>(plan.query.head_dim);
    merge.total = total;
    merge.part = part;
    plan.kernel->merge(&merge);
  }
};

// Enough units: each thread takes one after the other, and goes through its segments in order.
struct ByUnit {
  const Run& run;
  std::atomic<int64_t> claimed{0};

  void unit(int64_t index, float* scratch) const {
    float* q = scratch;
    float* total = q + run.cut.q_floats;
    float* part = total + run.cut.state_floats;
    const AttentionUnit unit = run.unit(index);
    const int64_t first = unit.first_key(0) / kSegmentKeys, last = unit.last_key(unit.rows - 1) / kSegmentKeys;
    run.load(index, q);
    run.segment(index, first, q, total);
    for (int64_t segment = first + 1; segment <= last; ++segment) {
      run.segment(index, segment, q, part);
      run.merge(index, total, part);
    }
    run.store(index, total);
  }
  void task(int64_t task) {
    float* scratch = run.workspace + task * (run.cut.q_floats + 2 * run.cut.state_floats);
    for (;;) {
      const int64_t next = claimed.fetch_add(1, std::memory_order_relaxed);
      if (next >= run.cut.units) return;
      unit(run.cut.units - 1 - next, scratch);  // later rows see more keys: the long ones first
    }
  }
};

void run_by_unit(const Run& run, const omni_parallel& parallel) {
  ByUnit work = {run};
  const int64_t tasks = std::min<int64_t>({parallel.threads, run.plan.query.max_threads, run.cut.units});
  if (tasks == 1) return work.task(0);
  const omni_task task = [](void* work, int64_t index) { static_cast<ByUnit*>(work)->task(index); };
  parallel.parallel_for(parallel.context, tasks, task, &work);
}

// Few units: waves of segments in parallel, each wave merged in order before the next.
struct BySegment {
  const Run& run;
  int64_t first = 0, segments = 0;  // of this wave

  float* q(int64_t unit) const { return run.workspace + unit * (run.cut.q_floats + run.cut.state_floats); }
  float* total(int64_t unit) const { return q(unit) + run.cut.q_floats; }
  float* part(int64_t unit, int64_t segment) const {
    return q(run.cut.units) + (unit * run.cut.wave_segments + segment) * run.cut.state_floats;
  }
  void task(int64_t task) const {
    const int64_t unit = task % run.cut.units, segment = task / run.cut.units;
    run.segment(unit, first + segment, q(unit), part(unit, segment));
  }
};

void run_by_segment(const Run& run, const omni_parallel& parallel) {
  BySegment work = {run};
  const AttentionUnit first = run.unit(0), last = run.unit(run.cut.units - 1);
  const int64_t begin = first.first_key(0) / kSegmentKeys, end = last.last_key(last.rows - 1) / kSegmentKeys + 1;
  for (int64_t unit = 0; unit < run.cut.units; ++unit) run.load(unit, work.q(unit));
  const int64_t waves = ceil_div(end - begin, run.cut.wave_segments), each = ceil_div(end - begin, waves);
  for (work.first = begin; work.first < end; work.first += each) {
    work.segments = std::min(each, end - work.first);
    const omni_task task = [](void* work, int64_t index) { static_cast<const BySegment*>(work)->task(index); };
    parallel.parallel_for(parallel.context, run.cut.units * work.segments, task, &work);
    for (int64_t unit = 0; unit < run.cut.units; ++unit) {
      // The first total is a copy: an empty one takes the part as it is.
      if (work.first == begin) std::fill_n(work.total(unit), run.unit(unit).rows, -std::numeric_limits<float>::infinity());
      for (int64_t segment = 0; segment < work.segments; ++segment) run.merge(unit, work.total(unit), work.part(unit, segment));
    }
  }
  for (int64_t unit = 0; unit < run.cut.units; ++unit) run.store(unit, work.total(unit));
}

}  // namespace

AttentionCut AttentionPlan::cut(uint32_t m) const {
  AttentionCut cut = {};
  const int64_t threads = query.max_threads, heads = query.kv_heads, dim = query.head_dim;
  cut.rows = int64_t{m} * group;
  const int64_t wanted = ceil_div(cut.rows * heads, kUnitsPerThread * threads);
  const int64_t step = ceil_div(std::min<int64_t>(wanted, kMostUnitRows), kUnitStep) * kUnitStep;
  cut.unit_rows = std::min(cut.rows, step);
  cut.units_per_head = ceil_div(cut.rows, cut.unit_rows);
  cut.units = cut.units_per_head * heads;
  cut.by_segment = threads > 1 && cut.units < 2 * threads;
  cut.q_floats = okl::q_floats(cut.unit_rows, dim);
  cut.state_floats = okl::state_floats(cut.unit_rows, dim);
  if (cut.by_segment) {
    const int64_t least = ceil_div(kUnitsPerThread * threads, cut.units);
    cut.wave_segments = std::max(least, kWaveFloats * threads / (cut.units * cut.state_floats));
    cut.workspace_floats = cut.units * (cut.q_floats + (1 + cut.wave_segments) * cut.state_floats);
  } else {
    cut.workspace_floats = std::min(threads, cut.units) * (cut.q_floats + 2 * cut.state_floats);
  }
  return cut;
}

void run_attention(const AttentionPlan& plan, const omni_attention_args& args, const omni_parallel& parallel) {
  const Run run = {plan, args, plan.cut(args.m), static_cast<float*>(args.workspace)};
  if (run.cut.by_segment) {
    run_by_segment(run, parallel);
  } else {
    run_by_unit(run, parallel);
  }
}

}  // namespace okl
