// SPDX-License-Identifier: Apache-2.0
// The vector attention kernels, written in lanes of sixteen and compiled once for AVX2 and once for AVX-512.
//
// Rows of a unit are cut into register tiles of R rows, and C vectors of 16 keys (scores) or 16 channels (values) make R x C
// accumulators. A key's pair chain runs down a lane, so keys stand side by side in the cache; a channel's chain over keys does too,
// so the channels of a value do.
#include "kernels/activation/exp.inl"
#include "kernels/attention/cache_rows.inl"

namespace okl {
namespace {

constexpr float kNegativeInfinity = -__builtin_inff(), kNotANumber = __builtin_nanf("");

#if defined(__AVX512F__)
// Channels of a bf16 value come as 16 even ones, then 16 odd ones.
constexpr int kSplit = 16;
// 24 accumulators leave room for the operands; 16 where fewer rows need them to hide the latency of their additions.
constexpr int tile_vectors(int rows) { return rows >= 6 ? 2 : 4; }
constexpr int next_tile(int rows) { return rows >= 12 ? 12 : rows >= 8 ? 8 : rows; }  // a decoded group of heads is one tile

OMNI_LANE_FN F32 load_s8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
template <int C>
OMNI_LANE_FN void load_bf16_values(const uint16_t* p, F32 (&w)[C]) {
  static_assert(C % 2 == 0);
#pragma GCC unroll 4
  for (int c = 0; c < C; c += 2) load_bf16_split(p + 16 * c, &w[c], &w[c + 1]);
}
OMNI_LANE_FN float greatest(F32 x) { return _mm512_reduce_max_ps(x.v); }
#else
constexpr int kSplit = 8;
constexpr int tile_vectors(int rows) { return rows >= 2 ? 1 : 2; }  // at most 8 of the 16 registers accumulate
constexpr int next_tile(int rows) { return rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }

OMNI_LANE_FN F32 load_s8(const int8_t* p) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
}
template <int C>
OMNI_LANE_FN void load_bf16_values(const uint16_t* p, F32 (&w)[C]) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    const __m256i pairs = load_words(p + 16 * c);
    w[c].lo = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    w[c].hi = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
  }
}
OMNI_LANE_FN float greatest(F32 x) {
  const __m256 both = _mm256_max_ps(x.lo, x.hi);
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
  most = _mm_max_ps(most, _mm_permute_ps(most, 0x4E));
  most = _mm_max_ps(most, _mm_permute_ps(most, 0xB1));
  return _mm_cvtss_f32(most);
}
#endif

// The pair chain takes the odd element first, as VDPBF16PS does; fp32 is one ascending chain.
template <omni_dtype cache>
constexpr int kFirstOfPair = cache == OMNI_DTYPE_F32 ? 0 : 1;

// Elements 2j + kFirstOfPair and the other one of 16 C keys.
template <omni_dtype cache, int C>
OMNI_LANE_FN void load_keys(const uint8_t* block, int64_t pair, int64_t key, F32 (&first)[C], F32 (&second)[C]) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    if constexpr (cache == OMNI_DTYPE_BF16) {
      load_bf16_split(reinterpret_cast<const uint16_t*>(block) + 2 * (pair * kBlockKeys + key + 16 * c), &second[c], &first[c]);
    } else if constexpr (cache == OMNI_DTYPE_F32) {
      const float* at = reinterpret_cast<const float*>(block) + 2 * pair * kBlockKeys + key + 16 * c;
      first[c] = load(at);
      second[c] = load(at + kBlockKeys);
    } else {
      const int8_t* at = reinterpret_cast<const int8_t*>(block) + 2 * pair * kBlockKeys + key + 16 * c;
      second[c] = load_s8(at);
      first[c] = load_s8(at + kBlockKeys);
    }
  }
}

template <omni_dtype cache, int C>
OMNI_LANE_FN void load_values(const uint8_t* p, F32 (&w)[C]) {
  if constexpr (cache == OMNI_DTYPE_BF16) {
    load_bf16_values(reinterpret_cast<const uint16_t*>(p), w);
  } else {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      if constexpr (cache == OMNI_DTYPE_F32) {
        w[c] = load(reinterpret_cast<const float*>(p) + 16 * c);
      } else {
        w[c] = load_s8(reinterpret_cast<const int8_t*>(p) + 16 * c);
      }
    }
  }
}

// The first-level cache holds a block of keys or of values but not both, so what comes next is asked for into the second level, by
// the first tile of a unit. Every line: with every second line or none, decoding reached 0.64 and 0.47 of the read arm instead of
// 0.78.
template <int bytes>
OMNI_LANE_FN void ask_for(const uint8_t* p) {
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

template <int R, int C>
OMNI_LANE_FN void add_products(const float* broadcast, int64_t stride, const F32 (&w)[C], F32 (&sum)[R][C]) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const F32 x = splat(broadcast[r * stride]);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[r][c] = fma(x, w[c], sum[r][c]);
  }
}

// Scores of 16 C keys from `key` on, for R rows of q as [head_dim][R], into scores[R][64].
template <omni_dtype cache, int R, int C>
void score_keys(const AttentionUnit& unit, const float* q, const uint8_t* block, const float* k_scales, int64_t key, float* scores,
                const uint8_t* ahead) {
  F32 sum[R][C];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[r][c] = splat(0.0F);
  }
  constexpr int kPairBytes = 2 * 16 * C * static_cast<int>(cache_element_bytes(cache));
  const int64_t pairs = unit.head_dim / 2;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    F32 first[C], second[C];
    load_keys<cache>(block, pair, key, first, second);
    if (ahead != nullptr) ask_for<kPairBytes>(ahead + pair * kPairBytes);
    add_products<R, C>(q + (2 * pair + kFirstOfPair<cache>)*R, 1, first, sum);
    add_products<R, C>(q + (2 * pair + 1 - kFirstOfPair<cache>)*R, 1, second, sum);
  }
  const F32 scale = splat(unit.scale);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      F32 score = sum[r][c];
      if constexpr (cache == OMNI_DTYPE_S8) score = score * load(k_scales + key + 16 * c);
      store(scores + r * kBlockKeys + key + 16 * c, score * scale);
    }
  }
}

// a <- a * decay, then keys [begin, end) added in order. `a` is the first group's R rows of 16 C channels, the next group's
// group_stride floats on.
template <omni_dtype cache, int R, int C>
void add_values(int32_t head_dim, const uint8_t* values, int64_t begin, int64_t end, const float* p, const float* decay, float* a,
                int64_t group_stride, const uint8_t* ahead) {
  constexpr int kRunBytes = 16 * C * static_cast<int>(cache_element_bytes(cache));
  const int64_t row_bytes = int64_t{head_dim} * cache_element_bytes(cache), groups = (head_dim + 16 * C - 1) / (16 * C);
  for (int64_t group = 0; group < groups; ++group) {
    float* rows = a + group * group_stride;
    F32 sum[R][C];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] = load(rows + 16 * (r * C + c)) * splat(decay[r]);
    }
    const uint8_t* run = values + begin * row_bytes + group * kRunBytes;
    for (int64_t key = begin; key < end; ++key) {
      F32 w[C];
      load_values<cache>(run, w);
      if (ahead != nullptr) ask_for<kRunBytes>(ahead + (group * kBlockKeys + key) * kRunBytes);
      add_products<R, C>(p + key, kBlockKeys, w, sum);
      run += row_bytes;
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) store(rows + 16 * (r * C + c), sum[r][c]);
    }
  }
}

constexpr int kLaneVectors = kBlockKeys / 16;

// One block of one row: scores in, p out (times v_scale with s8).
struct RowStep {
  float decay_exponent = 0.0F;  // of a and l: exp(0) = 1 when nothing was visible
  float sum = 0.0F;
  bool fresh = false;  // the row's first step: a is still unset
};

OMNI_LANE_FN RowStep soften(float* scores, int64_t begin, int64_t end, const float* v_scales, float* m, float* l) {
  RowStep step;
  const F32 low = splat(static_cast<float>(begin)), high = splat(static_cast<float>(end - 1)), none = splat(kNegativeInfinity);
  const F32 largest_finite = splat(0x1.fffffep127F);
  constexpr float kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  F32 s[kLaneVectors];
  Mask hidden[kLaneVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kLaneVectors; ++i) {
    const F32 lane = load(kIndex) + splat(16.0F * i);
    hidden[i] = less(lane, low) | less(high, lane);
    s[i] = select(hidden[i], none, load(scores + 16 * i));
  }
  const Mask poison = (not_less_equal(s[0], largest_finite) | not_less_equal(s[1], largest_finite)) |
                      (not_less_equal(s[2], largest_finite) | not_less_equal(s[3], largest_finite));
  if (any(poison)) {  // NaN or +Inf: l makes the whole row NaN
    *m = __builtin_inff();
    *l = kNotANumber;
    return step;
  }
  const float most = greatest(max(max(s[0], s[1]), max(s[2], s[3])));
  const float next = most > *m ? most : *m;
  if (next == kNegativeInfinity) return step;  // what is added to a with p = -Inf is dropped when the row starts
  step.fresh = *m == kNegativeInfinity;
  step.decay_exponent = *m - next;
  F32 p[kLaneVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kLaneVectors; ++i) p[i] = zero_where(hidden[i], exp_lanes(s[i] - splat(next)));
  step.sum = first(fold<1>(fold<2>(fold<4>(fold<8>((p[0] + p[2]) + (p[1] + p[3]))))));
#pragma GCC unroll 4
  for (int i = 0; i < kLaneVectors; ++i) {
    store(scores + 16 * i, v_scales == nullptr ? p[i] : p[i] * load(v_scales + 16 * i));
  }
  *m = next;
  return step;
}

// A register tile: R rows from `first` on, whose part of q and of a starts at first * head_dim and first * state_dim.
struct Tile {
  int32_t first;
  const float* q;
  float* m;
  float* l;
  float* a;
};

// One block of R rows; next_record is what to ask for meanwhile, or nullptr.
template <omni_dtype cache, int R>
void tile_step(const AttentionUnit& unit, const Tile& tile, int64_t block, const uint8_t* record, const uint8_t* next_record) {
  constexpr int C = tile_vectors(R);
  int64_t begin[R], end[R];
  for (int r = 0; r < R; ++r) {
    const int64_t first = unit.first_key(tile.first + r) - block * kBlockKeys;
    const int64_t last = unit.last_key(tile.first + r) - block * kBlockKeys;
    begin[r] = first > 0 ? first : 0;
    end[r] = last + 1 < kBlockKeys ? last + 1 : kBlockKeys;
  }
  if (begin[0] >= end[R - 1]) return;  // both rise with the row

  const int64_t part = kBlockKeys * unit.head_dim * cache_element_bytes(cache);
  const uint8_t* values = record + part;
  const float* scales = cache == OMNI_DTYPE_S8 ? reinterpret_cast<const float*>(values + part) : nullptr;
  float scores[R * kBlockKeys];
  const auto score = [&]<int N>(int64_t key, std::integral_constant<int, N>) {
    score_keys<cache, R, N>(unit, tile.q, record, scales, key, scores,
                            next_record == nullptr ? nullptr : values + key * (part / kBlockKeys));
  };
  for (int64_t key = 0; key < kBlockKeys; key += 16 * C) {
    if (key + 16 * C <= begin[0] || key >= end[R - 1]) continue;
    // A sequence of a few keys, as a frame's code predictor has, would read and ask for four times what it sees.
    if (C > 1 && end[R - 1] <= key + 16) {
      score(key, std::integral_constant<int, 1>());
    } else {
      score(key, std::integral_constant<int, C>());
    }
  }

  float decay[16] = {}, sum[16] = {}, l[16] = {};
  const int64_t group_stride = int64_t{R} * C * 16;
  for (int r = 0; r < R; ++r) {
    if (begin[r] >= end[r]) continue;
    const RowStep step = soften(scores + r * kBlockKeys, begin[r], end[r], scales == nullptr ? nullptr : scales + kBlockKeys,
                                tile.m + r, tile.l + r);
    decay[r] = step.decay_exponent;
    sum[r] = step.sum;
    if (step.fresh) {
      for (int64_t c = 0; c < unit.head_dim; c += 16 * C) {
        for (int i = 0; i < C; ++i) store(tile.a + c * R + (r * C + i) * 16, splat(0.0F));
      }
    }
  }
  for (int r = 0; r < R; ++r) l[r] = tile.l[r];
  const F32 factor = exp_lanes(load(decay));
  store(l, fma(load(l), factor, load(sum)));
  store(decay, factor);
  for (int r = 0; r < R; ++r) tile.l[r] = l[r];

  // Keys that all rows see go through the tile; before and after them each row goes on alone, so that its keys stay in order.
  const int64_t shared_begin = begin[R - 1], shared_end = end[0];
  const auto alone = [&](int r, int64_t from, int64_t to) {
    if (from >= to) return;
    add_values<cache, 1, C>(unit.head_dim, values, from, to, scores + r * kBlockKeys, decay + r, tile.a + r * C * 16, group_stride,
                            next_record);
    decay[r] = 1.0F;
  };
  if (shared_begin >= shared_end) {
    for (int r = 0; r < R; ++r) alone(r, begin[r], end[r]);
    return;
  }
  for (int r = 0; r < R; ++r) alone(r, begin[r], shared_begin);
  add_values<cache, R, C>(unit.head_dim, values, shared_begin, shared_end, scores, decay, tile.a, group_stride, next_record);
  for (int r = 0; r < R; ++r) {
    decay[r] = 1.0F;
    alone(r, shared_end, end[r]);
  }
}

template <omni_dtype cache>
void any_tile_step(int rows, const AttentionUnit& unit, const Tile& tile, int64_t block, const uint8_t* record,
                   const uint8_t* next_record) {
  switch (rows) {
#if defined(__AVX512F__)
    case 12:
      return tile_step<cache, 12>(unit, tile, block, record, next_record);
    case 8:
      return tile_step<cache, 8>(unit, tile, block, record, next_record);
    case 7:
      return tile_step<cache, 7>(unit, tile, block, record, next_record);
    case 6:
      return tile_step<cache, 6>(unit, tile, block, record, next_record);
    case 5:
      return tile_step<cache, 5>(unit, tile, block, record, next_record);
    case 3:
      return tile_step<cache, 3>(unit, tile, block, record, next_record);
#endif
    case 4:
      return tile_step<cache, 4>(unit, tile, block, record, next_record);
    case 2:
      return tile_step<cache, 2>(unit, tile, block, record, next_record);
    default:
      return tile_step<cache, 1>(unit, tile, block, record, next_record);
  }
}

template <omni_dtype cache>
void run_segment(const AttentionSegment* args) {
  const AttentionUnit& unit = args->unit;
  float* m = args->state;
  float* l = m + state_rows(unit.rows);
  float* a = l + state_rows(unit.rows);
  for (int32_t r = 0; r < unit.rows; ++r) {
    m[r] = kNegativeInfinity;
    l[r] = 0.0F;
  }
  const auto record_of = [&](int64_t block) { return args->records + block % args->ring_blocks * args->block_stride; };
  for (int64_t block = args->first_block; block < args->last_block; ++block) {
    const uint8_t* record = record_of(block);
    const uint8_t* next_record = block + 1 < args->last_block ? record_of(block + 1) : record;
    for (int32_t first = 0; first < unit.rows;) {
      const int rows = next_tile(unit.rows - first);
      const Tile tile = {first, args->q + int64_t{first} * unit.head_dim, m + first, l + first,
                         a + first * state_dim(unit.head_dim)};
      any_tile_step<cache>(rows, unit, tile, block, record, first == 0 ? next_record : nullptr);
      first += rows;
    }
  }
}

template <omni_dtype cache>
void load_rows(const AttentionLoad* args) {
  const AttentionUnit& unit = args->unit;
  const int64_t head_bytes = int64_t{unit.head_dim} * (args->q_type == OMNI_DTYPE_F32 ? 4 : 2);
  for (int32_t first = 0; first < unit.rows;) {
    const int rows = next_tile(unit.rows - first);
    float* panel = args->out + int64_t{first} * unit.head_dim;
    for (int r = 0; r < rows; ++r) {
      float row[kMostHeadDim];
      const int64_t offset = unit.row_offset(first + r, args->ldq, head_bytes);
      widen_row(static_cast<const uint8_t*>(args->q) + offset, args->q_type, unit.head_dim, row);
      round_q<cache>(row, unit.head_dim);
      for (int32_t i = 0; i < unit.head_dim; ++i) panel[i * rows + r] = row[i];
    }
    first += rows;
  }
}

// Where the channels of a row are: runs of `width` floats, group_stride apart.
struct RowOfA {
  int64_t offset, width, group_stride, groups;
  OMNI_LANE_FN RowOfA(int32_t head_dim, int32_t first, int rows, int r) {
    width = tile_vectors(rows) * 16;
    offset = first * state_dim(head_dim) + r * width;
    group_stride = rows * width;
    groups = (head_dim + width - 1) / width;
  }
};

OMNI_LANE_FN void merge_row(float* to, const float* from, const RowOfA& row, float old_weight, float weight, bool copy) {
  const F32 before = splat(old_weight), now = splat(weight);
  for (int64_t group = 0; group < row.groups; ++group) {
    for (int64_t i = 0; i < row.width; i += 16) {
      const int64_t at = row.offset + group * row.group_stride + i;
      const F32 part = load(from + at);
      store(to + at, copy ? part : fma(part, now, load(to + at) * before));
    }
  }
}

void merge_rows(const AttentionMerge* args) {
  const int64_t padded = state_rows(args->rows);
  float* m = args->total;
  float* l = m + padded;
  const float* part_m = args->part;
  const float* part_l = part_m + padded;
  for (int32_t first_row = 0; first_row < args->rows;) {
    const int rows = next_tile(args->rows - first_row);
    for (int r = first_row; r < first_row + rows; ++r) {
      if (part_m[r] == kNegativeInfinity) continue;
      const RowOfA row(args->head_dim, first_row, rows, r - first_row);
      if (m[r] == kNegativeInfinity) {
        m[r] = part_m[r];
        l[r] = part_l[r];
        merge_row(l + padded, part_l + padded, row, 0.0F, 1.0F, true);
        continue;
      }
      const float most = part_m[r] > m[r] ? part_m[r] : m[r];
      const float old_weight = first(exp_lanes(splat(m[r] - most))), weight = first(exp_lanes(splat(part_m[r] - most)));
      l[r] = __builtin_fmaf(part_l[r], weight, l[r] * old_weight);
      merge_row(l + padded, part_l + padded, row, old_weight, weight, false);
      m[r] = most;
    }
    first_row += rows;
  }
}

// One row of a times `inverse`, channels in order.
template <omni_dtype cache>
OMNI_LANE_FN void gather_row(const float* a, const RowOfA& row, float inverse, float* out) {
  for (int64_t group = 0; group < row.groups; ++group) {
    const float* from = a + row.offset + group * row.group_stride;
    float* to = out + group * row.width;
    if constexpr (cache == OMNI_DTYPE_BF16) {
      for (int64_t i = 0; i < row.width; i += 2 * kSplit) {
        for (int64_t j = 0; j < kSplit; ++j) {
          to[i + 2 * j] = from[i + j] * inverse;
          to[i + 2 * j + 1] = from[i + kSplit + j] * inverse;
        }
      }
    } else {
      for (int64_t i = 0; i < row.width; ++i) to[i] = from[i] * inverse;
    }
  }
}

template <omni_dtype cache>
void store_rows(const AttentionStore* args) {
  const AttentionUnit& unit = args->unit;
  const int64_t head_bytes = int64_t{unit.head_dim} * (args->out_type == OMNI_DTYPE_F32 ? 4 : 2);
  const float* m = args->total;
  const float* l = m + state_rows(unit.rows);
  const float* a = l + state_rows(unit.rows);
  for (int32_t first_row = 0; first_row < unit.rows;) {
    const int rows = next_tile(unit.rows - first_row);
    for (int r = 0; r < rows; ++r) {
      // m = -Inf: every visible score was -Inf, and a was never set.
      const float inverse = m[first_row + r] == kNegativeInfinity ? kNotANumber : 1.0F / l[first_row + r];
      alignas(64) float row[kMostHeadDim];
      gather_row<cache>(a, RowOfA(unit.head_dim, first_row, rows, r), inverse, row);
      const int64_t offset = unit.row_offset(first_row + r, args->ld_out, head_bytes);
      store_row(row, unit.head_dim, args->out_type, static_cast<uint8_t*>(args->out) + offset);
    }
    first_row += rows;
  }
}

template <omni_dtype cache>
constexpr AttentionKernel kVectorKernel = {load_rows<cache>, run_segment<cache>, merge_rows, store_rows<cache>, append_rows<cache>};

}  // namespace
}  // namespace okl
