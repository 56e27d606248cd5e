// SPDX-License-Identifier: Apache-2.0
// GELU(gate) * up and SiLU(gate) * up on fused rows, bf16 in and out.
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

enum GatedPart : size_t { kGateUp, kY };

struct Geglu {
  using Query = omni_geglu_query;
  using Args = omni_geglu_args;
  static constexpr auto select = omni_geglu_select;
  static constexpr auto run = omni_geglu_run;
  static constexpr const char* kSelectName = "omni_geglu_select";
  static constexpr const char* kRunName = "omni_geglu_run";
  static double function(double g) { return 0.5 * g * std::erfc(-g / std::sqrt(2.0)); }
};
struct Swiglu {
  using Query = omni_swiglu_query;
  using Args = omni_swiglu_args;
  static constexpr auto select = omni_swiglu_select;
  static constexpr auto run = omni_swiglu_run;
  static constexpr const char* kSelectName = "omni_swiglu_select";
  static constexpr const char* kRunName = "omni_swiglu_run";
  static double function(double g) { return g / (1.0 + std::exp(-g)); }
};

template <typename Operation>
class GatedRunner final : public Runner {
 public:
  GatedRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    typename Operation::Query query{};
    query.size = sizeof query;
    query.x_type = OMNI_DTYPE_BF16;
    query.y_type = OMNI_DTYPE_BF16;
    query.n = c.n();
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = Operation::select(&query, &plan);
    plan_ = take_plan(status, plan, Operation::kSelectName);
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
    const omni_status status = Operation::run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, Operation::kRunName);
  }

 private:
  const Workload& w_;
  Plan plan_;
  typename Operation::Args args_{};
};

template <typename Operation>
class Gated final : public RowsWorkload {
 public:
  Gated(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      fill_activations(kGateUp, c.m, 2 * c.n(), 0);
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override {
    return std::make_unique<GatedRunner<Operation>>(*this, choice);
  }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * the_case().n(); }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t n = the_case().n();
    const uint8_t* row = first<uint8_t>(kGateUp) + 4 * n * (index / n);
    const double g = bf16_at(row, index % n);
    const double u = bf16_at(row, n + index % n);
    const double y = Operation::function(g) * u;
    // Where 1 + erf cancels, fp32 keeps 2^-24 of g alone. Others round the function to bf16 before the product.
    return {y, bf16_bound(y, peer ? 3 : 1) + 0x1p-20 * std::fabs(g * u)};
  }
};

}  // namespace

std::vector<Part> gated_parts(const Case& c) {
  const auto elements = static_cast<size_t>(c.m * c.n());
  return {{"gate_up", 4 * elements, true}, {"y", 2 * elements, true}};
}

std::unique_ptr<Workload> make_geglu(const Case& c, const Pool& pool) { return std::make_unique<Gated<Geglu>>(c, pool); }
std::unique_ptr<Workload> make_swiglu(const Case& c, const Pool& pool) { return std::make_unique<Gated<Swiglu>>(c, pool); }

}  // namespace omnibench
