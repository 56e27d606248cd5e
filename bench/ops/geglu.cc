// SPDX-License-Identifier: Apache-2.0
// GELU(gate) * up on fused rows, bf16 in and out.
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

enum GegluPart : size_t { kGateUp, kY };

class GegluRunner final : public Runner {
 public:
  GegluRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_geglu_query query{};
    query.size = sizeof query;
    query.x_type = OMNI_DTYPE_BF16;
    query.y_type = OMNI_DTYPE_BF16;
    query.n = c.n();
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_geglu_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_geglu_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ld_gate_up = 2 * c.n();
    args_.ldy = c.n();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.gate_up = w_.data(copy, kGateUp);
    args_.y = w_.data(copy, kY);
    const omni_status status = omni_geglu_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_geglu_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_geglu_args args_{};
};

class Geglu final : public RowsWorkload {
 public:
  Geglu(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      fill_activations(kGateUp, c.m, 2 * c.n(), 0);
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<GegluRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * the_case().n(); }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t n = the_case().n();
    const uint8_t* row = first<uint8_t>(kGateUp) + 4 * n * (index / n);
    const double g = bf16_at(row, index % n);
    const double u = bf16_at(row, n + index % n);
    const double y = 0.5 * g * std::erfc(-g / std::sqrt(2.0)) * u;
    // Where 1 + erf cancels, fp32 keeps 2^-24 of g alone. Others round GELU(g) to bf16 before the product.
    return {y, bf16_bound(y, peer ? 3 : 1) + 0x1p-20 * std::fabs(g * u)};
  }
};

}  // namespace

std::vector<Part> geglu_parts(const Case& c) {
  const auto elements = static_cast<size_t>(c.m * c.n());
  return {{"gate_up", 4 * elements, true}, {"y", 2 * elements, true}};
}

std::unique_ptr<Workload> make_geglu(const Case& c, const Pool& pool) { return std::make_unique<Geglu>(c, pool); }

}  // namespace omnibench
