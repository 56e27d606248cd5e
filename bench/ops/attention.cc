// SPDX-License-Identifier: Apache-2.0
// Grouped-query attention over a cache of keys and values. Variants: the type of the cache, bf16, f32 or s8.
#include "bench/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

#include "bench/generator.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

enum AttentionPart : size_t { kCache, kQ, kOut };

struct Sizes {
  explicit Sizes(const Case& c) : heads(c.size(0)), kv_heads(c.size(1)), head_dim(c.size(2)), keys(c.size(3)), m(c.m) {}
  int64_t heads, kv_heads, head_dim, keys, m;
  [[nodiscard]] int64_t q_row() const { return heads * head_dim; }
  [[nodiscard]] int64_t kv_row() const { return kv_heads * head_dim; }
};

omni_dtype cache_type(const Case& c) {
  if (c.variant == "f32") return OMNI_DTYPE_F32;
  return c.variant == "s8" ? OMNI_DTYPE_S8 : OMNI_DTYPE_BF16;
}
/// Of rows of q, K, V and the output.
omni_dtype row_type(const Case& c) { return c.variant == "f32" ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16; }
int64_t row_element(const Case& c) { return c.variant == "f32" ? 4 : 2; }

size_t cache_bytes(const Case& c) {
  const Sizes s(c);
  size_t bytes = 0;
  check(omni_kv_cache_size(cache_type(c), static_cast<uint32_t>(s.kv_heads), static_cast<uint32_t>(s.head_dim),
                           (s.keys + 63) / 64 * 64, &bytes),
        "omni_kv_cache_size");
  return bytes;
}

Plan select(const Case& c, const Pool& pool, int64_t rows, const OurChoice& choice) {
  const Sizes s(c);
  omni_attention_query query{};
  query.size = sizeof query;
  query.cache_type = static_cast<uint16_t>(cache_type(c));
  query.q_type = query.kv_type = query.out_type = static_cast<uint16_t>(row_type(c));
  query.heads = static_cast<uint32_t>(s.heads);
  query.kv_heads = static_cast<uint32_t>(s.kv_heads);
  query.head_dim = static_cast<uint32_t>(s.head_dim);
  query.max_m = static_cast<uint32_t>(rows);
  query.max_threads = pool.threads();
  query.kernel = choice.kernel_or_null();
  query.max_isa = choice.max_isa_or_null();
  omni_plan* plan = nullptr;
  const omni_status status = omni_attention_select(&query, &plan);
  return take_plan(status, plan, "omni_attention_select");
}

/// Rows [first, first + rows) of the case.
class AttentionRunner final : public Runner {
 public:
  AttentionRunner(const Workload& w, const OurChoice& choice, int64_t first, int64_t rows, void* out)
      : w_(w), plan_(select(w.the_case(), w.pool(), rows, choice)) {
    const Case& c = w.the_case();
    const Sizes s(c);
    describe(plan_.get(), false, *this);
    check(omni_kv_cache_init(&cache_, cache_type(c), static_cast<uint32_t>(s.kv_heads), static_cast<uint32_t>(s.head_dim),
                             (s.keys + 63) / 64 * 64, w.data(w.copy(0), kCache), w.parts()[kCache].bytes),
          "omni_kv_cache_init");
    cache_.end = s.keys;
    size_t workspace_bytes = 0;
    check(omni_attention_workspace_size(plan_.get(), static_cast<uint32_t>(rows), &workspace_bytes),
          "omni_attention_workspace_size");
    workspace_ = Block(workspace_bytes);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(rows);
    args_.position = s.keys - s.m + first;
    args_.cache = &cache_;
    args_.q = w.data(w.copy(0), kQ) + first * s.q_row() * row_element(c);
    args_.ldq = args_.ld_out = s.q_row();
    args_.out = out;
    args_.workspace = workspace_.data();
    args_.workspace_bytes = workspace_bytes;
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    cache_.data = w_.data(copy, kCache);
    const omni_status status = omni_attention_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_attention_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_kv_cache cache_{};
  omni_attention_args args_{};
  Block workspace_;
};

class Attention final : public Workload {
 public:
  Attention(const Case& c, const Pool& pool) : Workload(c, pool), s_(c), wide_(c.variant == "f32") {
    if (s_.m > s_.keys) throw std::runtime_error(fmt::format("{} rows need as many keys, not {}", s_.m, s_.keys));
    k_ = rows(s_.keys, s_.kv_row(), 1);
    v_ = rows(s_.keys, s_.kv_row(), 2);
    make_copies([&] {
      const std::vector<uint8_t> q = rows(s_.m, s_.q_row(), 0);
      std::copy(q.begin(), q.end(), first<uint8_t>(kQ));
      append();
    });
    for (int64_t i = 0; i < 16; ++i) compared_.insert(s_.m <= 16 ? i % s_.m : i * (s_.m - 1) / 15);
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override {
    return std::make_unique<AttentionRunner>(*this, choice, 0, s_.m, first<uint8_t>(kOut));
  }

  /// q [M][heads][head_dim], k and v [keys][kv_heads][head_dim], bf16 (f32 in variant f32).
  void write_operands(const FileWriter& file) override {
    file("q", first<uint8_t>(kQ), parts()[kQ].bytes);
    file("k", k_.data(), k_.size());
    file("v", v_.data(), v_.size());
  }

  Verification compare(const void* output, size_t bytes, bool f32, const std::string& how) override {
    const auto wanted = static_cast<size_t>(s_.m * s_.q_row() * (f32 ? 4 : 2));
    const bool bits = how == "bits";
    if (!bits && how != "bound") throw std::runtime_error("unknown comparison \"" + how + "\"");
    if (bytes != (bits ? parts()[kOut].bytes : wanted)) throw std::runtime_error(fmt::format("the output has {} bytes", bytes));
    const auto* got = static_cast<const uint8_t*>(output);
    const auto row_bytes = static_cast<size_t>(s_.q_row() * row_element(the_case()));
    for (const int64_t row : compared_) {
      if (!bits) {
        check_row(got + row * s_.q_row() * (f32 ? 4 : 2), f32, row, 0x1p-8);
        continue;
      }
      const std::vector<uint8_t>& want = expected(row);
      if (std::memcmp(got + row * row_bytes, want.data(), row_bytes) != 0) {
        throw WrongOutput(fmt::format("wrong output: row {} has other bits than the portable tier gives it alone", row));
      }
    }
    const std::string coverage = fmt::format("{} of {} rows", compared_.size(), s_.m);
    return {true, bits ? "bit-equal to the portable tier row by row, that one within the bound of double precision, " + coverage
                       : "within the bound of bf16 probabilities, " + coverage};
  }

 private:
  [[nodiscard]] std::vector<uint8_t> rows(int64_t count, int64_t width, uint64_t salt) const {
    const Generator g{1, width, 1, the_case().shape.seed + salt};
    std::vector<uint8_t> out(static_cast<size_t>(count * width * row_element(the_case())));
    for (int64_t i = 0; i < count * width; ++i) {
      const uint32_t bits = g.activation(i / width, i % width);
      const uint32_t wide = bits << 16 | static_cast<uint32_t>(splitmix64(g.seed ^ static_cast<uint64_t>(i)) & 0xffff);
      std::memcpy(out.data() + i * row_element(the_case()), wide_ ? &wide : &bits, static_cast<size_t>(row_element(the_case())));
    }
    return out;
  }

  void append() {
    const Plan plan = select(the_case(), pool(), s_.m, {});
    omni_kv_cache cache{};
    check(omni_kv_cache_init(&cache, cache_type(the_case()), static_cast<uint32_t>(s_.kv_heads), static_cast<uint32_t>(s_.head_dim),
                             (s_.keys + 63) / 64 * 64, first<uint8_t>(kCache), parts()[kCache].bytes),
          "omni_kv_cache_init");
    omni_attention_append_args args{};
    args.size = sizeof args;
    args.rows = static_cast<uint32_t>(s_.keys);
    args.cache = &cache;
    args.k = k_.data();
    args.v = v_.data();
    args.ldk = args.ldv = s_.kv_row();
    args.parallel = pool().parallel();
    check(omni_attention_append(plan.get(), &args), "omni_attention_append");
  }

  [[nodiscard]] double value(const std::vector<uint8_t>& from, int64_t index) const {
    if (wide_) return reinterpret_cast<const float*>(from.data())[index];
    return bf16_to_float(reinterpret_cast<const uint16_t*>(from.data())[index]);
  }

  /// The rows of one head as the cache holds them.
  [[nodiscard]] std::vector<double> held(const std::vector<uint8_t>& from, int64_t kv_head, int64_t keys) const {
    std::vector<double> out;
    for (int64_t key = 0; key < keys; ++key) {
      const int64_t at = key * s_.kv_row() + kv_head * s_.head_dim;
      if (the_case().variant != "s8") {
        for (int64_t i = 0; i < s_.head_dim; ++i) out.push_back(value(from, at + i));
        continue;
      }
      const QuantizedRow row = scalar_quantize(reinterpret_cast<const uint16_t*>(from.data()) + at, s_.head_dim);
      for (const int8_t code : row.codes) out.push_back(static_cast<double>(code) * row.scale);
    }
    return out;
  }

  // In double precision; `relative` is how far each probability may be off. fp32 sums of 256 products leave it within 2^-12.
  void check_row(const uint8_t* got, bool f32, int64_t row, double relative) const {
    const int64_t visible = s_.keys - s_.m + row + 1;
    std::vector<double> p(static_cast<size_t>(visible));
    for (int64_t kv_head = 0; kv_head < s_.kv_heads; ++kv_head) {
      const std::vector<double> keys = held(k_, kv_head, visible);
      const std::vector<double> values = held(v_, kv_head, visible);
      const int64_t per = s_.heads / s_.kv_heads;
      for (int64_t head = kv_head * per; head < (kv_head + 1) * per; ++head) {
        const uint8_t* q = first<uint8_t>(kQ) + (row * s_.q_row() + head * s_.head_dim) * row_element(the_case());
        double largest = -HUGE_VAL;
        for (int64_t j = 0; j < visible; ++j) {
          double sum = 0;
          for (int64_t i = 0; i < s_.head_dim; ++i) sum += element(q, wide_, i) * keys[j * s_.head_dim + i];
          p[j] = sum / std::sqrt(static_cast<double>(s_.head_dim));
          largest = std::max(largest, p[j]);
        }
        double total = 0;
        for (double& x : p) total += x = std::exp(x - largest);
        for (int64_t i = 0; i < s_.head_dim; ++i) {
          double exact = 0;
          double magnitude = 0;
          for (int64_t j = 0; j < visible; ++j) {
            const double term = p[j] / total * values[j * s_.head_dim + i];
            exact += term;
            magnitude += std::fabs(term);
          }
          const double y = element(got, f32, head * s_.head_dim + i);
          const double bound = relative * magnitude + 0x1p-8 * std::fabs(exact);
          if (!(std::fabs(y - exact) <= bound)) {
            throw WrongOutput(
                fmt::format("wrong output: row {} head {} channel {} = {}, exact {}, bound {}", row, head, i, y, exact, bound));
          }
        }
      }
    }
  }

  static double element(const uint8_t* from, bool f32, int64_t index) {
    if (f32) return reinterpret_cast<const float*>(from)[index];
    return bf16_to_float(reinterpret_cast<const uint16_t*>(from)[index]);
  }

  /// What the portable tier gives one row alone: rows do not depend on how they are cut into runs.
  const std::vector<uint8_t>& expected(int64_t row) {
    std::vector<uint8_t>& bits = expected_[row];
    if (!bits.empty()) return bits;
    std::vector<uint8_t> out(static_cast<size_t>(s_.q_row() * row_element(the_case())));
    AttentionRunner(*this, {"", "portable"}, row, 1, out.data()).run(copy(0));
    try {
      check_row(out.data(), wide_, row, 0x1p-12);
    } catch (const WrongOutput& error) {
      throw WrongOutput(std::string("portable tier: ") + error.what());
    }
    bits = std::move(out);
    return bits;
  }

  Sizes s_;
  bool wide_;
  std::vector<uint8_t> k_, v_;
  std::set<int64_t> compared_;
  std::map<int64_t, std::vector<uint8_t>> expected_;
};

}  // namespace

std::vector<Part> attention_parts(const Case& c) {
  const Sizes s(c);
  const auto row = static_cast<size_t>(s.m * s.q_row() * row_element(c));
  return {{"cache", cache_bytes(c), true}, {"q", row, false}, {"out", row, false}};
}

double attention_operations(const Case& c) {
  const Sizes s(c);
  double visible = 0;
  for (int64_t row = 0; row < s.m; ++row) visible += static_cast<double>(s.keys - s.m + row + 1);
  return 4.0 * visible * static_cast<double>(s.q_row());
}

std::unique_ptr<Workload> make_attention(const Case& c, const Pool& pool) { return std::make_unique<Attention>(c, pool); }

}  // namespace omnibench
