// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution over rows of time, fp32 or bf16 rows and fp32 weights.
#include "bench/generator.h"
#include "bench/ops/conv.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

enum DepthwisePart : size_t { kWeights, kBias, kX, kY };

bool wide(const Case& c) { return c.variant == "f32"; }
int64_t input_rows(const Case& c) { return c.m + (c.k() - 1) * c.size(2); }

class DepthwiseRunner final : public Runner {
 public:
  DepthwiseRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_depthwise_query query{};
    query.size = sizeof query;
    query.x_type = query.y_type = static_cast<uint16_t>(wide(c) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    query.taps = static_cast<uint32_t>(c.k());
    query.dilation = static_cast<uint32_t>(c.size(2));
    query.n = c.n();
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_depthwise_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_depthwise_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = args_.ldy = c.n();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.weights = reinterpret_cast<const float*>(w_.data(copy, kWeights));
    args_.bias = reinterpret_cast<const float*>(w_.data(copy, kBias));
    args_.x = w_.data(copy, kX);
    args_.y = w_.data(copy, kY);
    const omni_status status = omni_depthwise_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_depthwise_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_depthwise_args args_{};
};

class Depthwise final : public RowsWorkload {
 public:
  Depthwise(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      fill(kWeights, c.k() * c.n(), true, 1);
      fill(kBias, c.n(), true, 2);
      fill(kX, input_rows(c) * c.n(), wide(c), 3);
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<DepthwiseRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * the_case().n(); }
  [[nodiscard]] bool output_f32() const override { return wide(the_case()); }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t n = the_case().n(), channel = index % n;
    double sum = first<float>(kBias)[channel], magnitude = std::fabs(sum);
    for (int64_t tap = 0; tap < the_case().k(); ++tap) {
      const int64_t at = index + tap * the_case().size(2) * n;
      const double x = output_f32() ? first<float>(kX)[at] : bf16_at(first<uint8_t>(kX), at);
      const double product = first<float>(kWeights)[tap * n + channel] * x;
      sum += product;
      magnitude += std::fabs(product);
    }
    return {sum, (output_f32() ? 0 : bf16_bound(sum, peer ? 3 : 1)) + 0x1p-20 * magnitude};
  }

 private:
  void fill(size_t part, int64_t count, bool f32, uint64_t salt) const {
    const Generator g{1, count, 1, the_case().shape.seed + salt};
    for (int64_t i = 0; i < count; ++i) {
      if (f32) {
        first<float>(part)[i] = bf16_to_float(g.activation(0, i));
      } else {
        first<uint16_t>(part)[i] = g.activation(0, i);
      }
    }
  }
};

}  // namespace

std::vector<Part> depthwise_parts(const Case& c) {
  const size_t element = wide(c) ? 4 : 2;
  return {{"weights", 4 * static_cast<size_t>(c.k() * c.n()), true},
          {"bias", 4 * static_cast<size_t>(c.n()), true},
          {"x", element * static_cast<size_t>(input_rows(c) * c.n()), true},
          {"y", element * static_cast<size_t>(c.m * c.n()), true}};
}

double depthwise_operations(const Case& c) { return 2.0 * static_cast<double>(c.m * c.n() * c.k()); }

std::unique_ptr<Workload> make_depthwise(const Case& c, const Pool& pool) { return std::make_unique<Depthwise>(c, pool); }

}  // namespace omnibench
