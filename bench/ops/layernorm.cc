// SPDX-License-Identifier: Apache-2.0
// LayerNorm with weight and bias. Variants: the type of the rows.
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

constexpr float kEps = 1e-5F;
enum LayernormPart : size_t { kX, kWeight, kBias, kY };

bool is_f32(const Case& c) { return c.variant != "bf16"; }

class LayernormRunner final : public Runner {
 public:
  LayernormRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_layernorm_query query{};
    query.size = sizeof query;
    query.x_type = query.y_type = static_cast<uint16_t>(is_f32(c) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    query.n = c.n();
    query.eps = kEps;
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_layernorm_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_layernorm_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = args_.ldy = c.n();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.weight = reinterpret_cast<const float*>(w_.data(copy, kWeight));
    args_.bias = reinterpret_cast<const float*>(w_.data(copy, kBias));
    args_.y = w_.data(copy, kY);
    const omni_status status = omni_layernorm_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_layernorm_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_layernorm_args args_{};
};

class Layernorm final : public RowsWorkload {
 public:
  Layernorm(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      if (is_f32(c)) {
        fill_activations_f32(kX, c.m, c.n(), 0);
      } else {
        fill_activations(kX, c.m, c.n(), 0);
      }
      fill_activations_f32(kWeight, 1, c.n(), 1);
      fill_activations_f32(kBias, 1, c.n(), 2);
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<LayernormRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * the_case().n(); }
  [[nodiscard]] bool output_f32() const override { return is_f32(the_case()); }
  [[nodiscard]] int64_t most_compared() const override { return 1 << 12; }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t n = the_case().n();
    const int64_t row = index / n * n;
    const int64_t column = index % n;
    double mean = 0;
    double variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += value(row + i) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) variance += (value(row + i) - mean) * (value(row + i) - mean) / static_cast<double>(n);
    const double bias = first<float>(kBias)[column];
    const double scaled = (value(index) - mean) / std::sqrt(variance + kEps) * first<float>(kWeight)[column];
    const double y = scaled + bias;
    // fp32 sums of n values of up to 2; where the two terms cancel, roundings of either remain.
    return {y, (is_f32(the_case()) ? 0 : bf16_bound(y, peer ? 3 : 1)) + 0x1p-18 * (std::fabs(scaled) + std::fabs(bias) + 1)};
  }

 private:
  [[nodiscard]] double value(int64_t index) const {
    return is_f32(the_case()) ? static_cast<double>(first<float>(kX)[index]) : bf16_at(first<uint8_t>(kX), index);
  }
};

}  // namespace

std::vector<Part> layernorm_parts(const Case& c) {
  const auto n = static_cast<size_t>(c.n());
  const size_t rows = (is_f32(c) ? 4 : 2) * static_cast<size_t>(c.m) * n;
  return {{"x", rows, true}, {"weight", 4 * n, true}, {"bias", 4 * n, true}, {"y", rows, true}};
}

std::unique_ptr<Workload> make_layernorm(const Case& c, const Pool& pool) { return std::make_unique<Layernorm>(c, pool); }

}  // namespace omnibench
