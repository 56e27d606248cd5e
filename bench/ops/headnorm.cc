// SPDX-License-Identifier: Apache-2.0
// RMSNorm of the heads of queries and keys in place. Variants: the type of the heads.
#include "bench/ops/activations.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

constexpr float kEps = 1e-6F;
enum HeadnormPart : size_t { kQWeight, kKWeight, kX };

int64_t width_of(const Case& c) { return (c.size(0) + c.size(1)) * c.size(2); }
bool is_f32(const Case& c) { return c.variant == "f32"; }

class HeadnormRunner final : public Runner {
 public:
  HeadnormRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_headnorm_query query{};
    query.size = sizeof query;
    query.type = static_cast<uint16_t>(is_f32(c) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    query.q_heads = static_cast<uint32_t>(c.size(0));
    query.k_heads = static_cast<uint32_t>(c.size(1));
    query.head_dim = static_cast<uint32_t>(c.size(2));
    query.eps = kEps;
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_headnorm_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_headnorm_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = width_of(c);
    args_.parallel = w.pool().parallel();
  }

  // The weights are 1 and -1, so that heads that were normalised keep their size; each sample starts from the same ones.
  void begin() override { w_.spoil_output(); }
  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    args_.q_weight = reinterpret_cast<const float*>(w_.data(copy, kQWeight));
    args_.k_weight = reinterpret_cast<const float*>(w_.data(copy, kKWeight));
    const omni_status status = omni_headnorm_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_headnorm_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_headnorm_args args_{};
};

class Headnorm final : public RowsWorkload {
 public:
  Headnorm(const Case& c, const Pool& pool) : RowsWorkload(c, pool) {
    make_copies([&] {
      for (int64_t i = 0; i < c.size(2); ++i) {
        first<float>(kQWeight)[i] = i % 3 == 0 ? -1.0F : 1.0F;
        first<float>(kKWeight)[i] = i % 5 == 0 ? -1.0F : 1.0F;
      }
      if (is_f32(c)) {
        fill_activations_f32(kX, c.m, width_of(c), 0);
      } else {
        fill_activations(kX, c.m, width_of(c), 0);
      }
    });
    original_.assign(first<uint8_t>(kX), first<uint8_t>(kX) + parts()[kX].bytes);
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<HeadnormRunner>(*this, choice); }
  void spoil_output() const override { std::copy(original_.begin(), original_.end(), first<uint8_t>(kX)); }
  /// x: [M][q_heads + k_heads][head_dim] of the type; weights fp32 [head_dim].
  void write_operands(const FileWriter& file) override {
    file("q_weight", first<uint8_t>(kQWeight), parts()[kQWeight].bytes);
    file("k_weight", first<uint8_t>(kKWeight), parts()[kKWeight].bytes);
    file("x", original_.data(), original_.size());
  }

 protected:
  [[nodiscard]] int64_t elements() const override { return the_case().m * width_of(the_case()); }
  [[nodiscard]] bool output_f32() const override { return is_f32(the_case()); }
  [[nodiscard]] int64_t most_compared() const override { return 1 << 14; }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const Case& c = the_case();
    const int64_t d = c.size(2);
    const int64_t head = index / d;
    double sum = 0;
    for (int64_t i = 0; i < d; ++i) sum += value(head * d + i) * value(head * d + i);
    const bool query = head % (c.size(0) + c.size(1)) < c.size(0);
    const double weight = first<float>(query ? kQWeight : kKWeight)[index % d];
    const double y = value(index) / std::sqrt(sum / static_cast<double>(d) + kEps) * weight;
    return {y, (is_f32(c) ? 0 : bf16_bound(y, peer ? 3 : 1)) + 0x1p-18 * std::fabs(y)};
  }

 private:
  [[nodiscard]] double value(int64_t index) const {
    return is_f32(the_case()) ? static_cast<double>(reinterpret_cast<const float*>(original_.data())[index])
                              : bf16_at(original_.data(), index);
  }

  std::vector<uint8_t> original_;
};

}  // namespace

std::vector<Part> headnorm_parts(const Case& c) {
  const auto weight = static_cast<size_t>(4 * c.size(2));
  const auto bytes = static_cast<size_t>((is_f32(c) ? 4 : 2) * c.m * width_of(c));
  return {{"q_weight", weight, true}, {"k_weight", weight, true}, {"x", bytes, true, 2.0 * static_cast<double>(bytes)}};
}

std::unique_ptr<Workload> make_headnorm(const Case& c, const Pool& pool) { return std::make_unique<Headnorm>(c, pool); }

}  // namespace omnibench
