// SPDX-License-Identifier: Apache-2.0
// Rows of an embedding table by id, to bf16. Variants: the table, tg4, w8s, w16 or plain (row-major bf16). Every call has other
// ids.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/generator.h"
#include "bench/ops/activations.h"
#include "bench/ops/linear.h"
#include "bench/ops/w4a16.h"

namespace omnibench {
namespace {

constexpr int64_t kSets = 256;  ///< of ids, in turn
enum GatherPart : size_t { kTable, kScales, kOut };

bool plain(const Case& c) { return c.variant == "plain"; }

LinearForm form_of(const Case& c) {
  LinearForm form;
  if (c.variant == "w8s") form.format = OMNI_FORMAT_W8S;
  if (c.variant == "w16" || plain(c)) {
    form.format = OMNI_FORMAT_W16;
    form.scale_type = OMNI_DTYPE_NONE;
  }
  return form;
}

/// Row `set` of ids: any rows, with a first and a last among those of the first set.
int64_t id_of(const Case& c, int64_t set, int64_t i) {
  if (set == 0 && i < 2) return i == 0 ? c.n() - 1 : 0;
  return static_cast<int64_t>(splitmix64(c.shape.seed + (uint64_t{1} << 43) + static_cast<uint64_t>(set * c.m + i)) %
                              static_cast<uint64_t>(c.n()));
}

class GatherRunner final : public Runner {
 public:
  GatherRunner(const Workload& w, const omni_layout& layout, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_gather_query query{};
    query.size = sizeof query;
    query.out_type = OMNI_DTYPE_BF16;
    query.plain_type = static_cast<uint16_t>(plain(c) ? OMNI_DTYPE_BF16 : OMNI_DTYPE_NONE);
    query.table = layout;
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_gather_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_gather_select");
    describe(plan, false, *this);
    for (int64_t i = 0; i < kSets * c.m; ++i) ids_.push_back(static_cast<int32_t>(id_of(c, i / c.m, i % c.m)));
    args_.size = sizeof args_;
    args_.id_bytes = 4;
    args_.count = c.m;
    args_.table_bytes = w.parts()[kTable].bytes;
    args_.ld_table = plain(c) ? c.k() : 0;
    args_.scales_bytes = w.parts()[kScales].bytes;
    args_.ld_out = c.k();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.ids = ids_.data() + set_ * args_.count;
    set_ = (set_ + 1) % kSets;
    args_.table = w_.data(copy, kTable);
    args_.scales = args_.scales_bytes > 0 ? w_.data(copy, kScales) : nullptr;
    args_.out = w_.data(copy, kOut);
    const omni_status status = omni_gather_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_gather_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  std::vector<int32_t> ids_;
  int64_t set_ = 0;
  omni_gather_args args_{};
};

class Gather final : public Workload {
 public:
  Gather(const Case& c, const Pool& pool)
      : Workload(c, pool), generator_{c.n(), c.k(), c.group, c.shape.seed}, layout_(layout_of(c, form_of(c))) {
    make_copies([&] {
      fill_table();
      fill_scales();
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override {
    return std::make_unique<GatherRunner>(*this, layout_, choice);
  }

  /// ids int32 [M]: the first set.
  void write_operands(const FileWriter& file) override {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < the_case().m; ++i) ids.push_back(static_cast<int32_t>(id_of(the_case(), 0, i)));
    file("ids", ids.data(), ids.size() * 4);
  }

  Verification compare(const void* output, size_t bytes, bool /*f32*/, const std::string& how) override {
    const Case& c = the_case();
    if (how != "bits") throw std::runtime_error("unknown comparison \"" + how + "\"");
    if (bytes != parts()[kOut].bytes) throw std::runtime_error(fmt::format("the output has {} bytes", bytes));
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t k = 0; k < c.k(); ++k) {
        const uint16_t got = static_cast<const uint16_t*>(output)[i * c.k() + k];
        const uint16_t want = value(id_of(c, 0, i), k);
        if (got != want) throw WrongOutput(fmt::format("wrong output: row {}, {}: {:#06x}, expected {:#06x}", i, k, got, want));
      }
    }
    return {true, "bit-equal to the scalar contract, all rows"};
  }

 private:
  [[nodiscard]] int8_t code8(int64_t n, int64_t k) const {
    const uint64_t h = splitmix64(generator_.seed + static_cast<uint64_t>(n * generator_.k + k));
    return std::max(static_cast<int8_t>(h >> 56), int8_t{-127});
  }

  /// bf16 bits of one element of the table.
  [[nodiscard]] uint16_t value(int64_t n, int64_t k) const {
    if (layout_.scale_type == OMNI_DTYPE_NONE) return generator_.activation(n, k);
    uint16_t s = 0;
    uint16_t z = 0;
    generator_.scale_zero(k / generator_.group, n, &s, &z);
    if (layout_.format == OMNI_FORMAT_W8S) return float_to_bf16(static_cast<float>(code8(n, k)) * bf16_to_float(s));
    return float_to_bf16(std::fma(static_cast<float>(generator_.code(n, k) - 8), bf16_to_float(s), bf16_to_float(z)));
  }

  void fill_table() {
    auto* const table = first<uint8_t>(kTable);
    const int64_t k = generator_.k;
    if (layout_.format == OMNI_FORMAT_TG4) return pack_tg4(generator_, pool(), table, parts()[kTable].bytes);
    if (layout_.format == OMNI_FORMAT_W8S) {
      const Block codes(static_cast<size_t>(generator_.n * k));
      pool().run(generator_.n, [&](int64_t n) {
        for (int64_t i = 0; i < k; ++i) codes.data()[n * k + i] = static_cast<uint8_t>(code8(n, i));
      });
      omni_repack_args args{};
      args.size = sizeof args;
      args.source_format = OMNI_FORMAT_CODES_S8;
      args.destination_format = OMNI_FORMAT_W8S;
      args.n = generator_.n;
      args.k = k;
      args.source = codes.data();
      args.source_bytes = static_cast<size_t>(generator_.n * k);
      args.destination = table;
      args.destination_bytes = parts()[kTable].bytes;
      args.parallel = pool().parallel();
      return check(omni_repack(&args), "omni_repack");
    }
    Block rows;
    if (!plain(the_case())) rows = Block(static_cast<size_t>(2 * generator_.n * k));
    auto* const source = reinterpret_cast<uint16_t*>(plain(the_case()) ? table : rows.data());
    pool().run(generator_.n, [&](int64_t n) {
      for (int64_t i = 0; i < k; ++i) source[n * k + i] = generator_.activation(n, i);
    });
    if (plain(the_case())) return;
    omni_pack_dense_args args{};
    args.size = sizeof args;
    args.source_type = OMNI_DTYPE_BF16;
    args.layout = layout_;
    args.source = source;
    args.source_bytes = static_cast<size_t>(2 * generator_.n * k);
    args.out = table;
    args.out_bytes = parts()[kTable].bytes;
    args.parallel = pool().parallel();
    check(omni_pack_dense(&args, nullptr), "omni_pack_dense");
  }

  void fill_scales() {
    if (layout_.scale_type == OMNI_DTYPE_NONE) return;
    const std::vector<uint16_t> both = generator_.scales();
    auto* const out = first<uint16_t>(kScales);
    if (layout_.format == OMNI_FORMAT_TG4) {
      std::memcpy(out, both.data(), both.size() * 2);
    } else {
      for (size_t i = 0; i < both.size() / 2; ++i) out[i] = both[2 * i];
    }
  }

  Generator generator_;
  omni_layout layout_;
};

}  // namespace

std::vector<Part> gather_parts(const Case& c) {
  const std::vector<Part> linear = linear_parts(c, form_of(c));
  const double share = static_cast<double>(c.m) / static_cast<double>(c.n());  // of the table's rows
  const size_t table = plain(c) ? static_cast<size_t>(2 * c.n() * c.k()) : linear[0].bytes;
  const size_t scales = linear[1].bytes;
  return {{"rows", table, true, share * static_cast<double>(table)},
          {"scales", scales, true, share * static_cast<double>(scales)},
          {"out", static_cast<size_t>(2 * c.m * c.k()), false}};
}

std::unique_ptr<Workload> make_gather(const Case& c, const Pool& pool) { return std::make_unique<Gather>(c, pool); }

}  // namespace omnibench
