// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bench/generator.h"

namespace omnibench {
namespace {

constexpr int64_t kProducts = int64_t{1} << 27;  // about 0.2 s of the portable tier
constexpr int64_t kBlock = 64;
constexpr int64_t kScalarChannels = 16;

double element(const void* y, bool f32, int64_t index) {
  if (f32) return static_cast<const float*>(y)[index];
  return bf16_to_float(static_cast<const uint16_t*>(y)[index]);
}

size_t element_bytes(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

omni_linear_query query_for(const LinearWorkload& workload, omni_numerics numerics, const OurChoice& choice) {
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = static_cast<uint16_t>(numerics);
  query.x_type = static_cast<uint16_t>(workload.form().x_type);
  query.y_type = OMNI_DTYPE_BF16;
  query.max_m = static_cast<uint32_t>(workload.the_case().m);
  query.max_threads = workload.pool().threads();
  query.weights = workload.layout();
  query.kernel = choice.kernel_or_null();
  query.max_isa = choice.max_isa_or_null();
  return query;
}

/// A plan with its workspace and the arguments that no call changes.
class LinearRunner final : public Runner {
 public:
  LinearRunner(LinearWorkload& workload, omni_numerics numerics, const OurChoice& choice)
      : workload_(workload), plan_(nullptr, omni_plan_destroy) {
    const omni_linear_query query = query_for(workload, numerics, choice);
    omni_plan* plan = nullptr;
    const omni_status status = omni_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_select");
    describe(plan_.get(), query.max_m > 1, *this);
    size_t workspace_bytes = 0;
    check(omni_workspace_size(plan, query.max_m, &workspace_bytes), "omni_workspace_size");
    workspace_ = Block(workspace_bytes);
    args_.size = sizeof args_;
    args_.m = query.max_m;
    args_.x = workload.x();
    args_.ldx = workload.the_case().k();
    args_.codes_bytes = workload.parts()[kCodes].bytes;
    args_.scales_bytes = workload.parts()[kScales].bytes;
    args_.y = workload.y();
    args_.ldy = workload.the_case().n();
    args_.workspace = workspace_.data();
    args_.workspace_bytes = workspace_bytes;
    args_.parallel = workload.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    set_weights(copy);
    const omni_status status = omni_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_run");
  }

  /// Only the channels of `parts`, into `y`.
  void run_parts(const std::vector<std::pair<int64_t, int64_t>>& parts, uint16_t* y) {
    set_weights(workload_.copy(0));
    args_.y = y;
    size_t scratch_bytes = 0;
    check(omni_scratch_size(plan_.get(), args_.m, &scratch_bytes), "omni_scratch_size");
    scratch_bytes = align_to_line(scratch_bytes);
    const Block scratch(scratch_bytes * parts.size());
    check(omni_prepare(plan_.get(), &args_), "omni_prepare");
    std::vector<omni_status> statuses(parts.size(), OMNI_OK);
    workload_.pool().run(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      omni_linear_args args = args_;
      args.scratch = scratch.data() + static_cast<size_t>(i) * scratch_bytes;
      args.scratch_bytes = scratch_bytes;
      statuses[i] = omni_run_portion(plan_.get(), &args, parts[i].first, parts[i].second);
    });
    for (const omni_status status : statuses) check(status, "omni_run_portion");
  }

 private:
  void set_weights(const uint8_t* copy) {
    args_.codes = workload_.data(copy, kCodes);
    args_.scales = args_.scales_bytes > 0 ? workload_.data(copy, kScales) : nullptr;
  }

  LinearWorkload& workload_;
  Plan plan_;
  omni_linear_args args_{};
  Block workspace_;
};

}  // namespace

const std::vector<Shape>& projections() {
  static const std::vector<Shape> shapes = {{"gate_up", {13312, 2048}, 0, 103},
                                            {"down", {2048, 6656}, 0, 104},
                                            {"q_k_v", {3072, 2048}, 0, 102},
                                            {"o", {2048, 2048}, 0, 101},
                                            {"head", {131072, 2048}, 0, 105}};
  return shapes;
}

omni_layout layout_of(const Case& c, const LinearForm& form) {
  omni_layout out{};
  out.size = sizeof out;
  const bool grouped = c.group > 0 && form.scale_type != OMNI_DTYPE_NONE;
  const auto group = grouped ? c.group : static_cast<uint32_t>(c.k());
  check(omni_layout_init(&out, form.format, c.n(), c.k(), group, form.scale_type), "omni_layout_init");
  out.flags = static_cast<uint16_t>(out.flags | form.flags);
  return out;
}

std::vector<Part> linear_parts(const Case& c, const LinearForm& form) {
  const omni_layout layout = layout_of(c, form);
  size_t codes = 0;
  size_t scales = 0;
  check(omni_packed_size(&layout, &codes), "omni_packed_size");
  check(omni_scales_size(&layout, &scales), "omni_scales_size");
  const auto m = static_cast<size_t>(c.m);
  return {{scales > 0 ? "codes" : "weights", codes, true},
          {"scales", scales, true},
          {"x", m * static_cast<size_t>(c.k()) * element_bytes(form.x_type), false},
          {"y", m * static_cast<size_t>(c.n()) * 2, false}};
}

double linear_operations(const Case& c) {
  return 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n()) * static_cast<double>(c.k());
}

LinearWorkload::LinearWorkload(const Case& c, const Pool& pool, const LinearForm& form)
    : Workload(c, pool), form_(form), layout_(layout_of(c, form)) {
  // All channels when M*N*K is at most kProducts, else blocks spread over the matrix, the first and last included.
  const int64_t per_block = kBlock * c.k() * std::max<int64_t>(c.m, 1);
  const int64_t blocks = (c.n() + kBlock - 1) / kBlock;
  const int64_t wanted = std::clamp<int64_t>(kProducts / per_block, std::min<int64_t>(2, blocks), blocks);
  for (int64_t i = 0; i < wanted; ++i) {
    const int64_t block = wanted < blocks ? i * (blocks - 1) / (wanted - 1) : i;
    ranges_.emplace_back(block * kBlock, std::min(c.n(), (block + 1) * kBlock));
  }
  for (const auto& [n0, n1] : ranges_) channels_ += n1 - n0;
}

void LinearWorkload::fill_x() {
  const Case& c = the_case();
  const Generator g{c.n(), c.k(), 1, c.shape.seed};
  for (int64_t m = 0; m < c.m; ++m) {
    for (int64_t k = 0; k < c.k(); ++k) {
      const uint16_t bits = g.activation(m, k);
      if (form_.x_type != OMNI_DTYPE_F32) {
        first<uint16_t>(kX)[m * c.k() + k] = bits;
        continue;
      }
      // 16 more bits of mantissa, so that a kernel that rounds x to bf16 is found out.
      const uint64_t more = splitmix64(c.shape.seed + (uint64_t{1} << 42) + static_cast<uint64_t>(m * c.k() + k)) & 0xffff;
      first<uint32_t>(kX)[m * c.k() + k] = static_cast<uint32_t>(bits) << 16 | static_cast<uint32_t>(more);
    }
  }
}

double LinearWorkload::x_value(int64_t m, int64_t k) const {
  return element(x(), form_.x_type == OMNI_DTYPE_F32, m * the_case().k() + k);
}

std::unique_ptr<Runner> LinearWorkload::runner(const OurChoice& choice) {
  return std::make_unique<LinearRunner>(*this, form_.numerics, choice);
}

std::unique_ptr<Arm> LinearWorkload::peer(const std::string& arm, std::string name) {
  if (arm == "onednn") return make_onednn_arm(std::move(name), *this);
  return Workload::peer(arm, std::move(name));
}

omni_numerics LinearWorkload::numerics_of(const std::string& how) const {
  if (how == "bits" || how == the_case().variant) return form_.numerics;
  throw std::runtime_error("unknown comparison \"" + how + "\"");
}

const std::vector<uint16_t>& LinearWorkload::expected(omni_numerics numerics) {
  std::vector<uint16_t>& bits = expected_[numerics];
  if (!bits.empty()) return bits;
  const Case& c = the_case();
  std::vector<uint16_t> y(static_cast<size_t>(c.m * c.n()));
  LinearRunner(*this, numerics, {"", "portable"}).run_parts(ranges_, y.data());
  int64_t position = 0;
  std::vector<uint16_t> found(static_cast<size_t>(channels_ * c.m));
  // By hand: a few channels, and of a large batch its first and last rows.
  const int64_t stride = std::max<int64_t>(1, channels_ / kScalarChannels);
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      for (int64_t m = 0; m < c.m; ++m) {
        const uint16_t got = y[m * c.n() + n];
        found[position * c.m + m] = got;
        if (position % stride != 0 || (m >= 8 && m < c.m - 8)) continue;
        const uint16_t want = float_to_bf16(scalar(numerics, m, n));
        if (want != got) {
          throw WrongOutput(fmt::format("portable tier: y[{}][{}] = {:#06x}, the scalar contract gives {:#06x}", m, n, got, want));
        }
      }
    }
  }
  bits = std::move(found);
  return bits;
}

void LinearWorkload::compare_bits(const void* y, bool f32, omni_numerics numerics) {
  const std::vector<uint16_t>& bits = expected(numerics);
  const Case& c = the_case();
  int64_t position = 0;
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      for (int64_t m = 0; m < c.m; ++m) {
        const int64_t index = m * c.n() + n;
        const uint16_t got = f32 ? float_to_bf16(static_cast<const float*>(y)[index]) : static_cast<const uint16_t*>(y)[index];
        const uint16_t want = bits[position * c.m + m];
        if (got != want) throw WrongOutput(fmt::format("wrong output: y[{}][{}] = {:#06x}, expected {:#06x}", m, n, got, want));
      }
    }
  }
}

// With S = sum |x||w| and u = 2^-8, the unit roundoff of bf16:
//   bf16 weights: each weight moves by at most u|w|, so the sum by u*S;
//   8-bit activations: each x moves by at most half a step, amax / 254, so the sum by amax/254 * sum|w|;
//   both: fp32 accumulation on either side adds at most K * 2^-24 * S each, and the store of bf16 u|y|.
void LinearWorkload::compare_bound(const void* y, bool f32, const std::string& how) {
  const Case& c = the_case();
  const int64_t k = c.k();
  const int64_t stride =
      std::max<int64_t>(1, channels_ * c.m * k / (int64_t{1} << 23));  // doubles by hand are slow: 8 million products
  std::vector<double> row(static_cast<size_t>(k));
  int64_t position = 0;
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      if (position % stride != 0) continue;
      double sum_weights = 0;
      for (int64_t i = 0; i < k; ++i) {
        row[i] = weight(n, i);
        sum_weights += std::fabs(row[i]);
      }
      for (int64_t m = 0; m < c.m; ++m) {
        double exact = 0;
        double magnitude = 0;
        double largest = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double value = x_value(m, i);
          exact += value * row[i];
          magnitude += std::fabs(value * row[i]);
          largest = std::max(largest, std::fabs(value));
        }
        const double input = how == "bf16-weights" ? 0x1p-8 * magnitude : (how == "accumulation" ? 0 : largest / 254 * sum_weights);
        const double bound = input + 2 * static_cast<double>(k) * 0x1p-24 * magnitude + 0x1p-8 * std::fabs(exact);
        const double got = element(y, f32, m * c.n() + n);
        if (!(std::fabs(got - exact) <= bound)) {
          throw WrongOutput(fmt::format("wrong output: y[{}][{}] = {}, exact {}, bound {}", m, n, got, exact, bound));
        }
      }
    }
  }
}

Verification LinearWorkload::compare(const void* output, size_t bytes, bool f32, const std::string& how) {
  const Case& c = the_case();
  const auto wanted = static_cast<size_t>(c.m * c.n()) * (f32 ? 4 : 2);
  if (bytes != wanted) throw std::runtime_error(fmt::format("the output has {} bytes, {} expected", bytes, wanted));
  const std::string coverage =
      channels_ == c.n() ? fmt::format("all {} channels", channels_) : fmt::format("{} of {} channels", channels_, c.n());
  if (how == "bf16-weights" || how == "int8-activations" || how == "accumulation") {
    compare_bound(output, f32, how);
    const std::string words = how == "bf16-weights"       ? "within the bound of bf16 weights"
                              : how == "int8-activations" ? "within the bound of 8-bit activations"
                                                          : "within the bound of fp32 accumulation";
    return {true, words + ", " + coverage};
  }
  compare_bits(output, f32, numerics_of(how));
  return {true, fmt::format("bit-equal to class {}, {}", how == "bits" ? c.variant : how, coverage)};
}

}  // namespace omnibench
