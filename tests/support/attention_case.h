// SPDX-License-Identifier: Apache-2.0
// Attention over a whole sequence: inputs, the contract written down once more (from plain arrays, without cache, blocks of slots
// or tiles), and a driver that feeds a kernel in chunks between guard pages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/activation/exp.inl"
#include "kernels/format/bf16.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/synthetic.h"

namespace okl::test {

struct AttentionShape {
  omni_dtype cache = OMNI_DTYPE_BF16, q = OMNI_DTYPE_BF16, kv = OMNI_DTYPE_BF16, out = OMNI_DTYPE_F32;
  uint32_t heads = 4, kv_heads = 1, dim = 64;
  int64_t window = 0, tokens = 100;

  std::string text() const {
    char line[200];
    std::snprintf(line, sizeof line, "cache=%d q=%d kv=%d out=%d heads=%u/%u dim=%u window=%ld tokens=%ld", cache, q, kv, out,
                  heads, kv_heads, dim, static_cast<long>(window), static_cast<long>(tokens));
    return line;
  }
};

// Values as a type stores them.
inline float as_stored(float value, omni_dtype type) {
  return type == OMNI_DTYPE_BF16 ? bf16_to_float(bf16_round_ieee(value)) : value;
}

// Inputs of a sequence, as fp32 that their type holds exactly.
struct AttentionInputs {
  AttentionShape shape;
  std::vector<float> q, k, v;  // [tokens][heads][dim]

  AttentionInputs(const AttentionShape& of, uint64_t seed, float spread = 1.0F) : shape(of) {
    const auto fill = [&](std::vector<float>& to, uint32_t heads, omni_dtype type, uint64_t stream) {
      to.resize(static_cast<size_t>(shape.tokens) * heads * shape.dim);
      for (size_t i = 0; i < to.size(); ++i) {
        const uint64_t h = splitmix64(seed * 1000003 + (stream << 48) + i);
        // Roughly normal: four bytes summed.
        const int sum = static_cast<int>((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24 & 255)) - 510;
        to[i] = as_stored(spread * (static_cast<float>(sum) + static_cast<float>(h >> 40) * 0x1p-24F) / 148.0F, type);
      }
    };
    fill(q, shape.heads, shape.q, 1);
    fill(k, shape.kv_heads, shape.kv, 2);
    fill(v, shape.kv_heads, shape.kv, 3);
  }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.dim))); }
  const float* q_at(int64_t t, uint32_t head) const { return q.data() + (t * shape.heads + head) * shape.dim; }
  const float* k_at(int64_t t, uint32_t head) const { return k.data() + (t * shape.kv_heads + head) * shape.dim; }
  const float* v_at(int64_t t, uint32_t head) const { return v.data() + (t * shape.kv_heads + head) * shape.dim; }
};

namespace attention_reference {

inline float exp1(float x) { return first(exp_lanes(splat(x))); }
inline float to_bf16(float x) { return bf16_to_float(bf16_round_group(x)); }
inline float scrub(float x, float below) { return std::fabs(x) < below ? 0.0F : x; }

// A row as the cache holds it: values, or codes and their scale.
struct Stored {
  std::vector<float> values;
  float scale = 1.0F;
};

inline Stored stored(const float* row, uint32_t dim, omni_dtype cache, bool key) {
  Stored result;
  result.values.assign(row, row + dim);
  if (cache == OMNI_DTYPE_BF16) {
    for (float& x : result.values) x = key ? scrub(to_bf16(x), 0x1p-56F) : to_bf16(x);
  } else if (cache == OMNI_DTYPE_S8) {
    float amax = 1e-7F;
    bool finite = true;
    for (const float x : result.values) {
      finite = finite && std::isfinite(x);
      amax = std::max(amax, std::fabs(x));
    }
    result.scale = finite ? amax / 127.0F : std::numeric_limits<float>::quiet_NaN();
    for (float& x : result.values) x = finite ? static_cast<float>(static_cast<int>(std::nearbyint(x * (127.0F / amax)))) : 0.0F;
  }
  return result;
}

struct State {
  float m = -std::numeric_limits<float>::infinity(), l = 0.0F;
  std::vector<float> a;
  bool empty = true, poisoned = false;
};

struct Sequence {
  const AttentionInputs& in;
  std::vector<Stored> k, v;  // [tokens][kv_heads]

  explicit Sequence(const AttentionInputs& inputs) : in(inputs) {
    for (int64_t t = 0; t < in.shape.tokens; ++t) {
      for (uint32_t h = 0; h < in.shape.kv_heads; ++h) {
        k.push_back(stored(in.k_at(t, h), in.shape.dim, in.shape.cache, true));
        v.push_back(stored(in.v_at(t, h), in.shape.dim, in.shape.cache, false));
      }
    }
  }

  std::vector<float> query(int64_t t, uint32_t head) const {
    std::vector<float> q(in.q_at(t, head), in.q_at(t, head) + in.shape.dim);
    if (in.shape.cache != OMNI_DTYPE_F32) {
      for (float& x : q) x = scrub(to_bf16(x), in.shape.cache == OMNI_DTYPE_S8 ? 0x1p-119F : 0x1p-56F);
    }
    return q;
  }

  float score(const std::vector<float>& q, const Stored& key) const {
    float s = 0.0F;
    const uint32_t odd_first = in.shape.cache == OMNI_DTYPE_F32 ? 0 : 1, dim = in.shape.dim;
    const float* a = q.data();  // plain pointers: most of a sanitized run is spent here
    const float* b = key.values.data();
    for (uint32_t i = 0; i < dim; i += 2) {
      s = std::fma(a[i + odd_first], b[i + odd_first], s);
      s = std::fma(a[i + 1 - odd_first], b[i + 1 - odd_first], s);
    }
    if (in.shape.cache == OMNI_DTYPE_S8) s = s * key.scale;
    return s * in.scale();
  }

  // Keys [begin, end) of one segment.
  State segment(const std::vector<float>& q, uint32_t kv_head, int64_t begin, int64_t end) const {
    State state;
    state.a.assign(in.shape.dim, 0.0F);
    for (int64_t block = begin / 64; block * 64 < end; ++block) {
      const int64_t from = std::max(begin, block * 64), to = std::min(end, block * 64 + 64);
      std::vector<float> s, p(64, 0.0F);
      for (int64_t t = from; t < to; ++t) s.push_back(score(q, k[t * in.shape.kv_heads + kv_head]));
      float most = state.m;
      for (const float x : s) {
        if (std::isnan(x) || x == std::numeric_limits<float>::infinity()) state.poisoned = true;
        most = std::max(most, x);
      }
      if (state.poisoned) return state;
      if (std::isinf(most)) continue;
      const float decay = exp1(state.m - most);
      for (int64_t t = from; t < to; ++t) p[t % 64] = exp1(s[t - from] - most);
      std::vector<float> tree = p;
      for (int half = 32; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
      }
      state.l = std::fma(state.l, decay, tree[0]);
      for (float& a : state.a) a = a * decay;
      for (int64_t t = from; t < to; ++t) {
        const Stored& value = v[t * in.shape.kv_heads + kv_head];
        const float weight = in.shape.cache == OMNI_DTYPE_S8 ? p[t % 64] * value.scale : p[t % 64];
        float* a = state.a.data();
        const float* each = value.values.data();
        for (uint32_t c = 0; c < in.shape.dim; ++c) a[c] = std::fma(weight, each[c], a[c]);
      }
      state.m = most;
      state.empty = false;
    }
    return state;
  }

  std::vector<float> row(int64_t t, uint32_t head) const {
    const uint32_t kv_head = head / (in.shape.heads / in.shape.kv_heads);
    const std::vector<float> q = query(t, head);
    const int64_t begin = in.shape.window == 0 ? 0 : std::max<int64_t>(0, t - in.shape.window + 1);
    State total;
    bool poisoned = false;
    for (int64_t s = begin / 1024; s * 1024 <= t; ++s) {
      const State part = segment(q, kv_head, std::max(begin, s * 1024), std::min(t + 1, s * 1024 + 1024));
      poisoned = poisoned || part.poisoned;
      if (part.empty) continue;
      if (total.empty) {
        total = part;
        continue;
      }
      const float m = std::max(total.m, part.m), old_weight = exp1(total.m - m), weight = exp1(part.m - m);
      total.l = std::fma(part.l, weight, total.l * old_weight);
      for (uint32_t c = 0; c < in.shape.dim; ++c) total.a[c] = std::fma(part.a[c], weight, total.a[c] * old_weight);
      total.m = m;
    }
    std::vector<float> out(in.shape.dim, std::numeric_limits<float>::quiet_NaN());
    if (poisoned || total.empty) return out;
    const float inverse = 1.0F / total.l;
    for (uint32_t c = 0; c < in.shape.dim; ++c) out[c] = total.a[c] * inverse;
    return out;
  }
};

inline uint32_t out_bits(float value, omni_dtype type) {
  if (type == OMNI_DTYPE_BF16) return bf16_round_group(value);
  return std::isnan(value) ? 0x7FC00000U : std::bit_cast<uint32_t>(value);
}

}  // namespace attention_reference

// Bits of the rows [from, tokens), [row][head][dim].
inline std::vector<uint32_t> expected_attention(const AttentionInputs& in, int64_t from = 0) {
  const attention_reference::Sequence sequence(in);
  std::vector<uint32_t> bits;
  for (int64_t t = from; t < in.shape.tokens; ++t) {
    for (uint32_t head = 0; head < in.shape.heads; ++head) {
      for (const float x : sequence.row(t, head)) bits.push_back(attention_reference::out_bits(x, in.shape.out));
    }
  }
  return bits;
}

inline omni_attention_query attention_query(const AttentionShape& shape, uint32_t max_m, uint32_t max_threads, const char* kernel) {
  omni_attention_query query = {};
  query.size = sizeof query;
  query.cache_type = static_cast<uint16_t>(shape.cache);
  query.q_type = static_cast<uint16_t>(shape.q);
  query.kv_type = static_cast<uint16_t>(shape.kv);
  query.out_type = static_cast<uint16_t>(shape.out);
  query.heads = shape.heads;
  query.kv_heads = shape.kv_heads;
  query.head_dim = shape.dim;
  query.max_m = max_m;
  query.max_threads = max_threads;
  query.window = shape.window;
  query.kernel = kernel;
  return query;
}

inline OwnedPlan make_attention_plan(const omni_attention_query& query) {
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_attention_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// A matrix of `rows` rows between guards, its columns beyond `width` NaN.
class GuardedRows {
 public:
  GuardedRows(int64_t rows, int64_t width, int64_t ld, omni_dtype type, Flush flush)
      : width_(width),
        ld_(ld),
        type_(type),
        element_(type == OMNI_DTYPE_F32 ? 4 : 2),
        memory_(static_cast<size_t>(rows == 0 ? 0 : ((rows - 1) * ld + width) * element_), flush, static_cast<size_t>(element_),
                0xFF) {}
  void set(int64_t row, const float* values) {
    for (int64_t i = 0; i < width_; ++i) {
      if (type_ == OMNI_DTYPE_F32) {
        memory_.as<float>()[row * ld_ + i] = values[i];
      } else {
        memory_.as<uint16_t>()[row * ld_ + i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
      }
    }
  }
  uint32_t bits(int64_t row, int64_t i) const {
    return type_ == OMNI_DTYPE_F32 ? memory_.as<uint32_t>()[row * ld_ + i] : memory_.as<uint16_t>()[row * ld_ + i];
  }
  // Columns between width and ld still hold the fill.
  bool padding_intact(int64_t rows) const {
    for (int64_t row = 0; row + 1 < rows; ++row) {
      for (int64_t i = width_; i < ld_; ++i) {
        if (bits(row, i) != (type_ == OMNI_DTYPE_F32 ? 0xFFFFFFFFU : 0xFFFFU)) return false;
      }
    }
    return memory_.intact();
  }
  void* data() { return memory_.data(); }

 private:
  int64_t width_, ld_;
  omni_dtype type_;
  int64_t element_;
  GuardedBuffer memory_;
};

struct AttentionFeed {
  std::function<int64_t(int64_t position)> append_rows = [](int64_t) { return int64_t{1} << 30; };
  std::function<int64_t(int64_t position)> run_rows = [](int64_t) { return int64_t{1} << 30; };
  int64_t capacity = 0;  // 0: the least that the contract allows
  int64_t from = 0;      // first row that is asked for
  uint32_t max_threads = 1;
  const omni_parallel* parallel = nullptr;  // NULL: the calling thread alone
  Flush flush = Flush::kBack;
  int64_t pad = 3;  // of every leading dimension
};

inline omni_parallel one_thread() {
  return {sizeof(omni_parallel), 1, nullptr, [](void*, int64_t count, omni_task task, void* context) {
            for (int64_t i = 0; i < count; ++i) task(context, i);
          }};
}

// Appends and runs the whole sequence in chunks; the bits of rows [feed.from, tokens).
inline std::vector<uint32_t> run_attention_case(const AttentionInputs& in, const char* kernel, const AttentionFeed& feed) {
  const AttentionShape& shape = in.shape;
  int64_t most_append = 1, most_run = 1;
  for (int64_t t = 0; t < shape.tokens;) {
    const int64_t rows = std::min(feed.append_rows(t), shape.tokens - t);
    most_append = std::max(most_append, rows);
    t += rows;
  }
  most_run = most_append;
  int64_t capacity = feed.capacity;
  if (capacity == 0) {
    capacity = (shape.tokens + 63) / 64 * 64;
    if (shape.window != 0) {
      EXPECT_EQ(omni_kv_cache_ring(shape.window, most_append, &capacity), OMNI_OK);
    }
  }
  const omni_parallel alone = one_thread();
  const omni_parallel* parallel = feed.parallel != nullptr ? feed.parallel : &alone;
  const OwnedPlan plan = make_attention_plan(attention_query(shape, static_cast<uint32_t>(most_run), feed.max_threads, kernel));
  if (plan == nullptr) return {};
  size_t cache_bytes = 0;
  EXPECT_EQ(omni_kv_cache_size(shape.cache, shape.kv_heads, shape.dim, capacity, &cache_bytes), OMNI_OK);
  GuardedBuffer memory(cache_bytes, feed.flush, 64, 0xFF);  // NaN of every type in slots that were never written
  omni_kv_cache cache;
  EXPECT_EQ(omni_kv_cache_init(&cache, shape.cache, shape.kv_heads, shape.dim, capacity, memory.data(), memory.size()), OMNI_OK)
      << omni_last_error();

  std::vector<uint32_t> result;
  const int64_t q_width = int64_t{shape.heads} * shape.dim, kv_width = int64_t{shape.kv_heads} * shape.dim;
  for (int64_t t = 0; t < shape.tokens;) {
    const int64_t rows = std::min(feed.append_rows(t), shape.tokens - t);
    GuardedRows k(rows, kv_width, kv_width + feed.pad, shape.kv, feed.flush),
        v(rows, kv_width, kv_width + feed.pad, shape.kv, feed.flush);
    for (int64_t i = 0; i < rows; ++i) {
      k.set(i, in.k_at(t + i, 0));
      v.set(i, in.v_at(t + i, 0));
    }
    omni_attention_append_args append = {};
    append.size = sizeof append;
    append.rows = static_cast<uint32_t>(rows);
    append.position = t;
    append.cache = &cache;
    append.k = k.data();
    append.v = v.data();
    append.ldk = append.ldv = kv_width + feed.pad;
    append.parallel = parallel;
    EXPECT_EQ(omni_attention_append(plan.get(), &append), OMNI_OK) << omni_last_error();
    EXPECT_EQ(cache.end, t + rows);
    for (int64_t row = std::max(t, feed.from); row < t + rows;) {
      const int64_t m = std::min({feed.run_rows(row), t + rows - row});
      GuardedRows q(m, q_width, q_width + feed.pad, shape.q, feed.flush),
          out(m, q_width, q_width + feed.pad, shape.out, feed.flush);
      for (int64_t i = 0; i < m; ++i) q.set(i, in.q_at(row + i, 0));
      size_t workspace_bytes = 0;
      EXPECT_EQ(omni_attention_workspace_size(plan.get(), static_cast<uint32_t>(m), &workspace_bytes), OMNI_OK);
      GuardedBuffer workspace(workspace_bytes, feed.flush, 64, 0xFF);
      omni_attention_args args = {};
      args.size = sizeof args;
      args.m = static_cast<uint32_t>(m);
      args.position = row;
      args.cache = &cache;
      args.q = q.data();
      args.ldq = q_width + feed.pad;
      args.out = out.data();
      args.ld_out = q_width + feed.pad;
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      args.parallel = parallel;
      EXPECT_EQ(omni_attention_run(plan.get(), &args), OMNI_OK) << omni_last_error();
      EXPECT_TRUE(out.padding_intact(m));
      EXPECT_TRUE(workspace.intact());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t c = 0; c < q_width; ++c) result.push_back(out.bits(i, c));
      }
      row += m;
    }
    t += rows;
  }
  EXPECT_TRUE(memory.intact());
  return result;
}

// The first element that differs, or "".
inline std::string attention_difference(const AttentionShape& shape, const std::vector<uint32_t>& actual,
                                        const std::vector<uint32_t>& expected) {
  if (actual.size() != expected.size()) return "sizes differ";
  const size_t width = size_t{shape.heads} * shape.dim;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    char text[160];
    std::snprintf(text, sizeof text, "row %zu head %zu channel %zu: 0x%08x, expected 0x%08x", i / width, i % width / shape.dim,
                  i % shape.dim, actual[i], expected[i]);
    return text;
  }
  return "";
}

}  // namespace okl::test
