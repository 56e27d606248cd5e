// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 to s8 with one scale each.
#include <fmt/format.h>

#include "bench/ops/activations.h"
#include "bench/ops/rows.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

enum QuantizePart : size_t { kX, kY };

class QuantizeRunner final : public Runner {
 public:
  QuantizeRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    omni_quantize_query query{};
    query.size = sizeof query;
    query.x_type = OMNI_DTYPE_BF16;
    query.k = c.n();
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_quantize_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_quantize_select");
    describe(plan, false, *this);
    args_.size = sizeof args_;
    args_.m = static_cast<uint32_t>(c.m);
    args_.ldx = args_.ld_codes = c.n();
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.x = w_.data(copy, kX);
    uint8_t* const out = w_.data(copy, kY);
    args_.codes = reinterpret_cast<int8_t*>(out);
    args_.scales = reinterpret_cast<float*>(out + align_to_line(static_cast<size_t>(args_.m * args_.ldx)));
    const omni_status status = omni_quantize_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_quantize_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  omni_quantize_args args_{};
};

class Quantize final : public Workload {
 public:
  Quantize(const Case& c, const Pool& pool) : Workload(c, pool) {
    make_copies([&] {
      const Generator g{1, c.n(), 1, c.shape.seed};
      for (int64_t row = 0; row < c.m; ++row) {
        for (int64_t i = 0; i < c.n(); ++i) first<uint16_t>(kX)[row * c.n() + i] = g.activation(row, i);
      }
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<QuantizeRunner>(*this, choice); }
  void write_operands(const FileWriter& file) override { write_inputs(*this, file); }

  /// "bits": codes and, behind them, scales; "codes": codes alone, within one, since others divide where the contract multiplies.
  Verification compare(const void* output, size_t bytes, bool /*f32*/, const std::string& how) override {
    const Case& c = the_case();
    const auto codes = static_cast<size_t>(c.m * c.n());
    const bool bits = how == "bits";
    if (!bits && how != "codes") throw std::runtime_error("unknown comparison \"" + how + "\"");
    if (bytes != (bits ? parts()[kY].bytes : codes)) throw std::runtime_error(fmt::format("the output has {} bytes", bytes));
    const auto* got = static_cast<const int8_t*>(output);
    const auto* scales = reinterpret_cast<const float*>(static_cast<const uint8_t*>(output) + align_to_line(codes));
    for (int64_t row = 0; row < c.m; ++row) {
      const QuantizedRow want = scalar_quantize(first<uint16_t>(kX) + row * c.n(), c.n());
      for (int64_t i = 0; i < c.n(); ++i) {
        const int difference = got[row * c.n() + i] - want.codes[i];
        if (difference < (bits ? 0 : -1) || difference > (bits ? 0 : 1)) {
          throw WrongOutput(
              fmt::format("wrong output: code [{}][{}] = {}, expected {}", row, i, got[row * c.n() + i], want.codes[i]));
        }
      }
      if (bits && std::memcmp(scales + row, &want.scale, 4) != 0) {
        throw WrongOutput(fmt::format("wrong output: scale [{}] = {}, expected {}", row, scales[row], want.scale));
      }
    }
    return {true, bits ? "bit-equal to the scalar contract, all rows" : "codes within one of the scalar contract's, all rows"};
  }
};

}  // namespace

std::vector<Part> quantize_parts(const Case& c) {
  const auto elements = static_cast<size_t>(c.m * c.n());
  return {{"x", 2 * elements, true}, {"codes", align_to_line(elements) + 4 * static_cast<size_t>(c.m), true}};
}

std::unique_ptr<Workload> make_quantize(const Case& c, const Pool& pool) { return std::make_unique<Quantize>(c, pool); }

}  // namespace omnibench
