// SPDX-License-Identifier: Apache-2.0
// Head gates with sigmoid. Variants: gates (fp32 gates only), values (the product with each head's bf16 output of 256 elements).
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

constexpr int64_t kHeadDim = 256;
enum HeadgatePart : size_t { kX, kWeights, kValues, kOut };

bool with_values(const Case& c) { return c.variant == "values"; }

omni_headgate_query query_of(const Case& c) {
  omni_headgate_query query{};
  query.size = sizeof query;
  query.x_type = OMNI_DTYPE_BF16;
  query.weight_type = OMNI_DTYPE_BF16;
  query.value_type = static_cast<uint16_t>(with_values(c) ? OMNI_DTYPE_BF16 : OMNI_DTYPE_NONE);
  query.activation = OMNI_HEADGATE_SIGMOID;
  query.heads = static_cast<uint32_t>(c.n());
  query.k = c.k();
  query.head_dim = with_values(c) ? kHeadDim : 0;
  return query;
}

class HeadgateRunner final : public Runner {
 public:
  HeadgateRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_headgate_query query = query_of(c);
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_headgate_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_headgate_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = c.k();
    args_.weights_bytes = w.parts()[kWeights].bytes;
    args_.ld_gates = c.n();
    args_.ld_values = args_.ld_out = c.n() * kHeadDim;
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.weights = w_.data(copy, kWeights);
    if (with_values(w_.the_case())) {
      args_.values = w_.data(copy, kValues);
      args_.out = w_.data(copy, kOut);
    } else {
      args_.gates = reinterpret_cast<float*>(w_.data(copy, kOut));
    }
    const omni_status status = omni_headgate_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_headgate_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_headgate_args args_{};
};

class Headgate final : public RowsWorkload {
 public:
  Headgate(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    // Small weights, so that the sums of 2048 products stay where the sigmoid is neither 0 nor 1.
    const Generator g{c.n(), c.k(), 1, c.shape.seed + 1};
    for (int64_t i = 0; i < c.n() * c.k(); ++i) {
      const uint16_t bits = g.activation(0, i);
      weights_.push_back(static_cast<uint16_t>(bits - (6 << 7)));
    }
    make_copies([&] {
      fill_activations(kX, c.m, c.k(), 0);
      const omni_headgate_query query = query_of(c);
      check(omni_headgate_pack(&query, weights_.data(), c.k(), first<uint8_t>(kWeights), parts()[kWeights].bytes),
            "omni_headgate_pack");
      if (with_values(c)) fill_activations(kValues, c.m, c.n() * kHeadDim, 2);
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<HeadgateRunner>(*this, choice); }
  /// weights: bf16 [heads][K], not as packed.
  void write_operands(const FileWriter& file) override {
    file("x", first<uint8_t>(kX), parts()[kX].bytes);
    file("weights", weights_.data(), weights_.size() * 2);
    if (with_values(the_case())) file("values", first<uint8_t>(kValues), parts()[kValues].bytes);
  }

 protected:
  [[nodiscard]] int64_t elements() const override {
    return the_case().m * the_case().n() * (with_values(the_case()) ? kHeadDim : 1);
  }
  [[nodiscard]] bool output_f32() const override { return !with_values(the_case()); }
  [[nodiscard]] int64_t most_compared() const override { return 1 << 12; }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const Case& c = the_case();
    const int64_t gate = with_values(c) ? index / kHeadDim : index;
    const uint8_t* x = first<uint8_t>(kX) + 2 * c.k() * (gate / c.n());
    const uint16_t* w = weights_.data() + c.k() * (gate % c.n());
    double sum = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < c.k(); ++i) {
      const double product = bf16_at(x, i) * bf16_at(w, i);
      sum += product;
      magnitude += std::fabs(product);
    }
    const double sigmoid = 1 / (1 + std::exp(-sum));
    // The sigmoid's slope is at most 1/4. Others round the sum and the gate to bf16.
    double bound = 0.25 * static_cast<double>(c.k()) * 0x1p-24 * magnitude + 0x1p-20;
    if (peer) bound += 0.25 * bf16_bound(sum, 1) + bf16_bound(sigmoid, 1);
    if (!with_values(c)) return {sigmoid, bound};
    const double value = bf16_at(first<uint8_t>(kValues), index);
    return {sigmoid * value, bound * std::fabs(value) + bf16_bound(sigmoid * value, 1)};
  }

 private:
  std::vector<uint16_t> weights_;
};

}  // namespace

std::vector<Part> headgate_parts(const Case& c) {
  const omni_headgate_query query = query_of(c);
  size_t packed = 0;
  check(omni_headgate_packed_size(&query, &packed), "omni_headgate_packed_size");
  const auto m = static_cast<size_t>(c.m);
  const auto h = static_cast<size_t>(c.n());
  const size_t values = with_values(c) ? m * h * kHeadDim * 2 : 0;
  return {{"x", m * static_cast<size_t>(c.k()) * 2, true},
          {"weights", packed, true},
          {"values", values, true},
          {with_values(c) ? "out" : "gates", with_values(c) ? values : m * h * 4, true}};
}

double headgate_operations(const Case& c) {
  return 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n()) * static_cast<double>(c.k());
}

std::unique_ptr<Workload> make_headgate(const Case& c, const Pool& pool) { return std::make_unique<Headgate>(c, pool); }

}  // namespace omnibench
