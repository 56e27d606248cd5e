// SPDX-License-Identifier: Apache-2.0
// The portable attention kernels: the contract written down, one row and one key at a time. They define the bits of the others.
#include "kernels/activation/exp.inl"
#include "kernels/attention/cache_rows.inl"

namespace okl {
namespace {

constexpr float kNegativeInfinity = -__builtin_inff(), kNotANumber = __builtin_nanf("");

// q prepared: [rows][head_dim]. State: m and l of each row, then a as [rows][state_dim].
struct State {
  float* m;
  float* l;
  float* a;
  State(float* floats, int32_t rows) : m(floats), l(floats + state_rows(rows)), a(floats + 2 * state_rows(rows)) {}
};

void exp_block(float (&x)[kBlockKeys]) {
  for (int64_t i = 0; i < kBlockKeys; i += kLanes) store(x + i, exp_lanes(load(x + i)));
}
float exp_one(float x) { return first(exp_lanes(splat(x))); }

template <omni_dtype cache>
void load_rows(const AttentionLoad* args) {
  const AttentionUnit& unit = args->unit;
  const int64_t head_bytes = int64_t{unit.head_dim} * (args->q_type == OMNI_DTYPE_F32 ? 4 : 2);
  for (int32_t r = 0; r < unit.rows; ++r) {
    float* row = args->out + int64_t{r} * unit.head_dim;
    widen_row(static_cast<const uint8_t*>(args->q) + unit.row_offset(r, args->ldq, head_bytes), args->q_type, unit.head_dim, row);
    round_q<cache>(row, unit.head_dim);
  }
}

// One K/V head's keys, values and scales in a block.
template <omni_dtype cache>
struct Record {
  const uint8_t* keys;
  const uint8_t* values;
  const float* scales;
  int64_t dim;
  Record(const uint8_t* record, int64_t head_dim)
      : keys(record),
        values(record + kBlockKeys * head_dim * cache_element_bytes(cache)),
        scales(reinterpret_cast<const float*>(values + kBlockKeys * head_dim * cache_element_bytes(cache))),
        dim(head_dim) {}

  float key(int64_t slot, int64_t i) const {
    if constexpr (cache == OMNI_DTYPE_F32) return reinterpret_cast<const float*>(keys)[i * kBlockKeys + slot];
    if constexpr (cache == OMNI_DTYPE_S8) return static_cast<float>(reinterpret_cast<const int8_t*>(keys)[i * kBlockKeys + slot]);
    return bf16_to_float(reinterpret_cast<const uint16_t*>(keys)[(i / 2 * kBlockKeys + slot) * 2 + i % 2]);
  }
  float value(int64_t slot, int64_t c) const {
    if constexpr (cache == OMNI_DTYPE_F32) return reinterpret_cast<const float*>(values)[slot * dim + c];
    if constexpr (cache == OMNI_DTYPE_S8) return static_cast<float>(reinterpret_cast<const int8_t*>(values)[slot * dim + c]);
    return bf16_to_float(reinterpret_cast<const uint16_t*>(values)[slot * dim + c]);
  }
};

template <omni_dtype cache>
float score(const Record<cache>& record, const float* q, int64_t slot, float scale) {
  float s = 0.0F;
  if constexpr (cache == OMNI_DTYPE_F32) {
    for (int64_t i = 0; i < record.dim; ++i) s = __builtin_fmaf(q[i], record.key(slot, i), s);
  } else {
    for (int64_t i = 0; i < record.dim; i += 2) {  // the odd element of a pair first, as VDPBF16PS has it
      s = __builtin_fmaf(q[i + 1], record.key(slot, i + 1), s);
      s = __builtin_fmaf(q[i], record.key(slot, i), s);
    }
  }
  if constexpr (cache == OMNI_DTYPE_S8) s = s * record.scales[slot];
  return s * scale;
}

float tree_sum(float (&lanes)[kBlockKeys]) {
  for (int64_t half = kBlockKeys / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

// One step: keys [begin, end) of a block for one row.
template <omni_dtype cache>
void step(const Record<cache>& record, const float* q, int64_t begin, int64_t end, float scale, float* m, float* l, float* a) {
  float p[kBlockKeys], most = kNegativeInfinity;
  bool poisoned = false;
  for (float& x : p) x = kNegativeInfinity;
  for (int64_t slot = begin; slot < end; ++slot) {
    p[slot] = score(record, q, slot, scale);
    poisoned = poisoned || !(p[slot] < __builtin_inff());
    most = p[slot] > most ? p[slot] : most;
  }
  if (poisoned) {
    *m = __builtin_inff();
    *l = kNotANumber;
    return;
  }
  const float next = most > *m ? most : *m;
  if (next == kNegativeInfinity) return;
  const float decay = exp_one(*m - next);
  for (float& x : p) x = x - next;  // masked keys: exp(-Inf) is +0
  exp_block(p);
  float lanes[kBlockKeys];
  for (int64_t i = 0; i < kBlockKeys; ++i) lanes[i] = p[i];
  *l = __builtin_fmaf(*l, decay, tree_sum(lanes));
  if constexpr (cache == OMNI_DTYPE_S8) {
    for (int64_t slot = begin; slot < end; ++slot) p[slot] = p[slot] * record.scales[kBlockKeys + slot];
  }
  for (int64_t c = 0; c < record.dim; ++c) {
    float sum = *m == kNegativeInfinity ? 0.0F : a[c] * decay;
    for (int64_t slot = begin; slot < end; ++slot) sum = __builtin_fmaf(p[slot], record.value(slot, c), sum);
    a[c] = sum;
  }
  *m = next;
}

template <omni_dtype cache>
void run_segment(const AttentionSegment* args) {
  const AttentionUnit& unit = args->unit;
  const State state(args->state, unit.rows);
  for (int32_t r = 0; r < unit.rows; ++r) {
    state.m[r] = kNegativeInfinity;
    state.l[r] = 0.0F;
    for (int64_t block = args->first_block; block < args->last_block; ++block) {
      const int64_t first = unit.first_key(r) - block * kBlockKeys, last = unit.last_key(r) - block * kBlockKeys;
      const int64_t begin = first > 0 ? first : 0, end = last + 1 < kBlockKeys ? last + 1 : kBlockKeys;
      if (begin >= end) continue;
      const Record<cache> record(args->records + block % args->ring_blocks * args->block_stride, unit.head_dim);
      step(record, args->q + int64_t{r} * unit.head_dim, begin, end, unit.scale, state.m + r, state.l + r,
           state.a + r * state_dim(unit.head_dim));
    }
  }
}

void merge_rows(const AttentionMerge* args) {
  const State total(args->total, args->rows), part(const_cast<float*>(args->part), args->rows);
  for (int32_t r = 0; r < args->rows; ++r) {
    float* to = total.a + r * state_dim(args->head_dim);
    const float* from = part.a + r * state_dim(args->head_dim);
    if (part.m[r] == kNegativeInfinity) continue;
    if (total.m[r] == kNegativeInfinity) {
      total.m[r] = part.m[r];
      total.l[r] = part.l[r];
      for (int32_t c = 0; c < args->head_dim; ++c) to[c] = from[c];
      continue;
    }
    const float most = part.m[r] > total.m[r] ? part.m[r] : total.m[r];
    const float old_weight = exp_one(total.m[r] - most), weight = exp_one(part.m[r] - most);
    total.l[r] = __builtin_fmaf(part.l[r], weight, total.l[r] * old_weight);
    for (int32_t c = 0; c < args->head_dim; ++c) to[c] = __builtin_fmaf(from[c], weight, to[c] * old_weight);
    total.m[r] = most;
  }
}

void store_rows(const AttentionStore* args) {
  const AttentionUnit& unit = args->unit;
  const State total(const_cast<float*>(args->total), unit.rows);
  const int64_t head_bytes = int64_t{unit.head_dim} * (args->out_type == OMNI_DTYPE_F32 ? 4 : 2);
  for (int32_t r = 0; r < unit.rows; ++r) {
    const float inverse = total.m[r] == kNegativeInfinity ? kNotANumber : 1.0F / total.l[r];
    float row[kMostHeadDim];
    // A NaN weight must win over what a may hold, even where nothing was ever accumulated.
    for (int32_t c = 0; c < unit.head_dim; ++c) {
      row[c] = inverse != inverse ? inverse : total.a[r * state_dim(unit.head_dim) + c] * inverse;
    }
    store_row(row, unit.head_dim, args->out_type, static_cast<uint8_t*>(args->out) + unit.row_offset(r, args->ld_out, head_bytes));
  }
}

}  // namespace

extern const AttentionKernel attention_bf16_portable = {load_rows<OMNI_DTYPE_BF16>, run_segment<OMNI_DTYPE_BF16>, merge_rows,
                                                        store_rows, append_rows<OMNI_DTYPE_BF16>};
extern const AttentionKernel attention_f32_portable = {load_rows<OMNI_DTYPE_F32>, run_segment<OMNI_DTYPE_F32>, merge_rows,
                                                       store_rows, append_rows<OMNI_DTYPE_F32>};
extern const AttentionKernel attention_s8_portable = {load_rows<OMNI_DTYPE_S8>, run_segment<OMNI_DTYPE_S8>, merge_rows, store_rows,
                                                      append_rows<OMNI_DTYPE_S8>};

}  // namespace okl
