// SPDX-License-Identifier: Apache-2.0
// RMSNorm. Variants: plain (bf16 in and out), add (bf16 residual stream), quant (s8 codes and scales out, for class exact).
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

constexpr float kEps = 1e-6F;
enum RmsnormPart : size_t { kX, kWeight, kResidual, kY };

class RmsnormRunner final : public Runner {
 public:
  RmsnormRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    const bool quant = c.variant == "quant";
    const bool add = c.variant == "add";
    omni_rmsnorm_query query{};
    query.size = sizeof query;
    query.x_type = OMNI_DTYPE_BF16;
    query.weight_type = OMNI_DTYPE_BF16;
    query.residual_type = static_cast<uint16_t>(add ? OMNI_DTYPE_BF16 : OMNI_DTYPE_NONE);
    query.y_type = static_cast<uint16_t>(quant ? OMNI_DTYPE_S8 : OMNI_DTYPE_BF16);
    query.code_source = static_cast<uint16_t>(quant ? OMNI_DTYPE_BF16 : OMNI_DTYPE_NONE);
    query.n = c.n();
    query.eps = kEps;
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_rmsnorm_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_rmsnorm_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = args_.ldy = c.n();
    args_.ld_residual = add ? c.n() : 0;
    args_.parallel = w.pool().parallel();
  }

  // The stream grows by x with every call: each sample starts from the same one.
  void begin() override { w_.spoil_output(); }

  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.weight = w_.data(copy, kWeight);
    args_.residual = args_.ld_residual > 0 ? w_.data(copy, kResidual) : nullptr;
    args_.y = w_.data(copy, kY);
    if (w_.the_case().variant == "quant") {
      args_.scales = reinterpret_cast<float*>(w_.data(copy, kY) + align_to_line(static_cast<size_t>(args_.m * args_.ldy)));
    }
    const omni_status status = omni_rmsnorm_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_rmsnorm_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_rmsnorm_args args_{};
};

class Rmsnorm final : public RowsWorkload {
 public:
  Rmsnorm(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      fill_activations(kX, c.m, c.n(), 0);
      fill_activations(kWeight, 1, c.n(), 1);
      if (c.variant == "add") fill_activations(kResidual, c.m, c.n(), 2);
      spoil_output();
    });
    original_.assign(first<uint16_t>(kResidual), first<uint16_t>(kResidual) + parts()[kResidual].bytes / 2);
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<RmsnormRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override {
    file("x", first<uint8_t>(kX), parts()[kX].bytes);
    file("weight", first<uint8_t>(kWeight), parts()[kWeight].bytes);
    if (!original_.empty()) file("residual", original_.data(), original_.size() * 2);
  }
  void spoil_output() const override {
    Workload::spoil_output();
    std::copy(original_.begin(), original_.end(), first<uint16_t>(kResidual));
  }

 protected:
  [[nodiscard]] int64_t elements() const override {
    return the_case().variant == "quant" ? 0 : the_case().m * the_case().n();  // codes are compared as bits only
  }
  [[nodiscard]] int64_t most_compared() const override { return 1 << 12; }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t n = the_case().n();
    const int64_t row = index / n;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += stream(row, i) * stream(row, i);
    const double r = 1 / std::sqrt(sum / static_cast<double>(n) + kEps);
    const double y = stream(row, index % n) * r * bf16_at(first<uint8_t>(kWeight), index % n);
    // One rounding when stored; 2^-16 covers the fp32 sum of 2048 squares. Others may round x*r before they multiply by w.
    return {y, bf16_bound(y, peer ? 3 : 1) + 0x1p-16 * std::fabs(y)};
  }

 private:
  /// h of the contract: x, or the residual stream with x added as the stream stores it.
  [[nodiscard]] double stream(int64_t row, int64_t i) const {
    const int64_t at = row * the_case().n() + i;
    const double x = bf16_at(first<uint8_t>(kX), at);
    if (original_.empty()) return x;
    return bf16_to_float(float_to_bf16(static_cast<float>(x) + bf16_to_float(original_[at])));
  }

  std::vector<uint16_t> original_;
};

}  // namespace

std::vector<Part> rmsnorm_parts(const Case& c) {
  const auto n = static_cast<size_t>(c.n());
  const auto m = static_cast<size_t>(c.m);
  const bool add = c.variant == "add";
  const bool quant = c.variant == "quant";
  const size_t y = quant ? align_to_line(m * n) + 4 * m : 2 * m * n;
  return {{"x", 2 * m * n, true},
          {"weight", 2 * n, true},
          // Read and written.
          {"residual", add ? 2 * m * n : 0, true, add ? 4.0 * static_cast<double>(m * n) : 0},
          {"y", y, true}};
}

std::unique_ptr<Workload> make_rmsnorm(const Case& c, const Pool& pool) { return std::make_unique<Rmsnorm>(c, pool); }

}  // namespace omnibench
