// SPDX-License-Identifier: Apache-2.0
// Functions of single elements and SnakeBeta, fp32 in and out; snake-bf16: rows of bf16.
#include <array>
#include <string_view>

#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

enum ActivationPart : size_t { kX, kA, kB, kY };

struct Function {
  std::string_view name;
  omni_activation id;
  double (*exact)(double);
};
constexpr std::array<Function, 7> kFunctions = {{
    {"relu", OMNI_ACTIVATION_RELU, [](double x) { return x > 0 ? x : 0; }},
    {"elu", OMNI_ACTIVATION_ELU, [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"gelu", OMNI_ACTIVATION_GELU, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
    {"silu", OMNI_ACTIVATION_SILU, [](double x) { return x / (1 + std::exp(-x)); }},
    {"sigmoid", OMNI_ACTIVATION_SIGMOID, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", OMNI_ACTIVATION_TANH, [](double x) { return std::tanh(x); }},
    {"exp", OMNI_ACTIVATION_EXP, [](double x) { return std::exp(x); }},
}};

bool is_f32(const Case& c) { return c.variant != "snake-bf16"; }

/// nullptr: SnakeBeta.
const Function* function_of(const Case& c) {
  for (const Function& function : kFunctions) {
    if (function.name == c.variant) return &function;
  }
  return nullptr;
}

class ActivationRunner final : public Runner {
 public:
  ActivationRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    const Function* function = function_of(c);
    omni_activation_query query{};
    query.size = sizeof query;
    query.function = static_cast<uint16_t>(function != nullptr ? function->id : OMNI_ACTIVATION_SNAKE);
    query.x_type = query.y_type = static_cast<uint16_t>(is_f32(c) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    query.n = c.n();
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_activation_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_activation_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = args_.ldy = c.n();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.a = reinterpret_cast<const float*>(w_.data(copy, kA));
    args_.b = reinterpret_cast<const float*>(w_.data(copy, kB));
    args_.y = w_.data(copy, kY);
    const omni_status status = omni_activation_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_activation_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_activation_args args_{};
};

class Activation final : public RowsWorkload {
 public:
  Activation(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      if (is_f32(c)) {
        fill_activations_f32(kX, c.m, c.n(), 0);
      } else {
        fill_activations(kX, c.m, c.n(), 0);
      }
      if (function_of(c) == nullptr) {
        for (int64_t i = 0; i < c.n(); ++i) {
          first<float>(kA)[i] = 0.5F + static_cast<float>(i % 61) * 0.25F;
          first<float>(kB)[i] = 1.0F / (0.25F + static_cast<float>(i % 17) * 0.125F);
        }
      }
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<ActivationRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * the_case().n(); }
  [[nodiscard]] bool output_f32() const override { return is_f32(the_case()); }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const Case& c = the_case();
    const double x = is_f32(c) ? static_cast<double>(first<float>(kX)[index]) : bf16_at(first<uint8_t>(kX), index);
    const double rounding = is_f32(c) ? 0 : 1;
    if (const Function* function = function_of(c); function != nullptr) {
      const double y = function->exact(x);
      return {y, bf16_bound(y, rounding) + 0x1p-20 * (std::fabs(y) + (peer ? std::fabs(x) : 0))};
    }
    const double a = first<float>(kA)[index % c.n()];
    const double b = first<float>(kB)[index % c.n()];
    const double s = std::sin(x * a);
    const double y = x + s * s * b;
    // The product is rounded before its sine is taken; others form each step in the type of the rows.
    const double step = is_f32(c) || !peer ? 0x1p-24 : 0x1p-9;
    return {y, bf16_bound(y, rounding) + 4 * step * (std::fabs(x) + b + std::fabs(x * a * b))};
  }
};

}  // namespace

std::vector<Part> activation_parts(const Case& c) {
  const size_t columns = function_of(c) == nullptr ? static_cast<size_t>(4 * c.n()) : 0;
  const auto rows = static_cast<size_t>((is_f32(c) ? 4 : 2) * c.m * c.n());
  return {{"x", rows, true}, {"a", columns, true}, {"b", columns, true}, {"y", rows, true}};
}

std::unique_ptr<Workload> make_activation(const Case& c, const Pool& pool) { return std::make_unique<Activation>(c, pool); }

}  // namespace omnibench
