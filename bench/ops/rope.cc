// SPDX-License-Identifier: Apache-2.0
// RoPE on bf16 heads in place, at positions 1000, 1001, ...
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

constexpr int64_t kFirstPosition = 1000;
constexpr double kTheta = 10000;
enum RopePart : size_t { kTable, kX };

omni_rope_range range_of(const Case& c) {
  omni_rope_range range{};
  range.size = sizeof range;
  range.rot = static_cast<uint32_t>(c.size(2));
  range.theta = kTheta;
  range.p0 = kFirstPosition;
  range.p1 = kFirstPosition + c.m;
  return range;
}

class RopeRunner final : public Runner {
 public:
  RopeRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_rope_query query{};
    query.size = sizeof query;
    query.type = OMNI_DTYPE_BF16;
    query.heads = static_cast<uint32_t>(c.size(0));
    query.head_dim = static_cast<uint32_t>(c.size(1));
    query.rot = static_cast<uint32_t>(c.size(2));
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_rope_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_rope_select");
    describe(plan, false, *this);
    for (int64_t i = 0; i < c.m; ++i) positions_.push_back(static_cast<int32_t>(kFirstPosition + i));
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = c.size(0) * c.size(1);
    args_.positions = positions_.data();
    args_.table_bytes = w.parts()[kTable].bytes;
    args_.p0 = kFirstPosition;
    args_.p1 = kFirstPosition + c.m;
    args_.parallel = w.pool().parallel();
  }

  // Rotating the same heads again and again only drifts by roundings, but each sample starts from the same ones.
  void begin() override { w_.spoil_output(); }
  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.table = w_.data(copy, kTable);
    const omni_status status = omni_rope_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_rope_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  std::vector<int32_t> positions_;
  omni_rope_args args_{};
};

class Rope final : public RowsWorkload {
 public:
  Rope(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      const omni_rope_range range = range_of(c);
      check(omni_rope_table(&range, first<uint8_t>(kTable), parts()[kTable].bytes), "omni_rope_table");
      fill_activations(kX, c.m, c.size(0) * c.size(1), 0);
    });
    original_.assign(first<uint16_t>(kX), first<uint16_t>(kX) + parts()[kX].bytes / 2);
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<RopeRunner>(*this, choice); }
  void spoil_output() const override { std::copy(original_.begin(), original_.end(), first<uint16_t>(kX)); }
  /// x: bf16 [M][heads][head_dim]; table: fp32 [M][rot], cosines before sines, for the positions of the rows.
  void write_operands(const FileWriter& file) override {
    file("table", first<uint8_t>(kTable), parts()[kTable].bytes);
    file("x", original_.data(), original_.size() * 2);
  }

 protected:
  [[nodiscard]] int64_t elements() const override { return static_cast<int64_t>(original_.size()); }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const Case& c = the_case();
    const int64_t half = c.size(2) / 2;
    const int64_t at = index % c.size(1);
    const double x = bf16_at(original_.data(), index);
    if (at >= 2 * half) return {x, 0};
    const int64_t position = kFirstPosition + index / (c.size(0) * c.size(1));
    const int64_t j = at % half;
    // The angle is formed in fp32, as everybody does.
    const auto frequency = static_cast<float>(1 / std::pow(kTheta, 2.0 * static_cast<double>(j) / static_cast<double>(2 * half)));
    const double angle = static_cast<float>(position) * frequency;
    const double other = bf16_at(original_.data(), at < half ? index + half : index - half);
    const double y = at < half ? x * std::cos(angle) - other * std::sin(angle) : x * std::cos(angle) + other * std::sin(angle);
    // 2^-16 of the operands covers the last bit of the frequency at these positions; others have cosines and products in bf16.
    return {y, bf16_bound(y, 1) + (peer ? 3 * 0x1p-8 : 0x1p-12) * (std::fabs(x) + std::fabs(other))};
  }

 private:
  std::vector<uint16_t> original_;
};

}  // namespace

std::vector<Part> rope_parts(const Case& c) {
  const omni_rope_range range = range_of(c);
  size_t table = 0;
  check(omni_rope_table_size(&range, &table), "omni_rope_table_size");
  const auto bytes = static_cast<size_t>(2 * c.m * c.size(0) * c.size(1));
  const double rotated = 2.0 * static_cast<double>(c.m * c.size(0) * c.size(2));
  return {{"table", table, true}, {"x", bytes, true, 2 * rotated}};  // the rotated part is read and written
}

std::unique_ptr<Workload> make_rope(const Case& c, const Pool& pool) { return std::make_unique<Rope>(c, pool); }

}  // namespace omnibench
