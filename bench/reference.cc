// SPDX-License-Identifier: Apache-2.0
#include "bench/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "omni/omni.h"

namespace omnibench {
namespace {

constexpr int64_t kProducts = int64_t{1} << 27;  // about 0.2 s of the portable tier
constexpr int64_t kBlock = 64;
constexpr int64_t kScalarChannels = 16;

float scrub(float value) { return std::fabs(value) < 0x1p-119F ? 0.0F : value; }

float group_class(const Generator& w, const uint16_t* x, int64_t channel) {
  float c = 0;
  for (int64_t k0 = 0, g = 0; k0 < w.k; k0 += w.group, ++g) {
    const int64_t k1 = std::min<int64_t>(w.k, k0 + w.group);
    float d = 0;
    float sum = 0;
    for (int64_t k = k0; k < k1; k += 2) {  // pairs, the odd element first
      if (k + 1 < k1) {
        const float odd = scrub(bf16_to_float(x[k + 1]));
        d = std::fma(odd, static_cast<float>(w.code(channel, k + 1) - 8), d);
        sum = std::fma(odd, 1.0F, sum);
      }
      const float even = scrub(bf16_to_float(x[k]));
      d = std::fma(even, static_cast<float>(w.code(channel, k) - 8), d);
      sum = std::fma(even, 1.0F, sum);
    }
    uint16_t s = 0;
    uint16_t z = 0;
    w.scale_zero(g, channel, &s, &z);
    c = std::fma(bf16_to_float(s), d, c);
    c = std::fma(bf16_to_float(z), sum, c);
  }
  return c;
}

float torch_class(const Generator& w, const uint16_t* x, int64_t channel) {
  float c = 0;
  for (int64_t k = 0; k < w.k; ++k) {
    uint16_t s = 0;
    uint16_t z = 0;
    w.scale_zero(k / w.group, channel, &s, &z);
    const float weight = std::fma(static_cast<float>(w.code(channel, k) - 8), bf16_to_float(s), bf16_to_float(z));
    c = std::fma(bf16_to_float(x[k]), weight, c);
  }
  return c;
}

float element(const void* y, bool f32, int64_t index) {
  if (f32) return static_cast<const float*>(y)[index];
  return bf16_to_float(static_cast<const uint16_t*>(y)[index]);
}

const char* name_of(Tolerance tolerance) {
  switch (tolerance) {
    case Tolerance::kGroupBits:
      return "bit-equal to class group";
    case Tolerance::kTorchBits:
      return "bit-equal to class torch";
    case Tolerance::kBf16Weights:
      return "within the bound of bf16 weights";
    case Tolerance::kInt8Activations:
      return "within the bound of 8-bit activations";
  }
  return "?";
}

}  // namespace

float scalar_gemv(const Generator& weights, omni_numerics numerics, const uint16_t* x, int64_t channel) {
  return numerics == OMNI_NUMERICS_TORCH ? torch_class(weights, x, channel) : group_class(weights, x, channel);
}

uint16_t scalar_dequant(const Generator& weights, int64_t channel, int64_t input) {
  uint16_t s = 0;
  uint16_t z = 0;
  weights.scale_zero(input / weights.group, channel, &s, &z);
  return float_to_bf16(std::fma(static_cast<float>(weights.code(channel, input) - 8), bf16_to_float(s), bf16_to_float(z)));
}

Reference::Reference(Operands& operands) : operands_(operands) {
  const Case& c = operands.the_case();
  const int64_t n = c.shape.n;
  const int64_t per_block = kBlock * c.shape.k * std::max<int64_t>(c.m, 1);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  const int64_t wanted = std::clamp<int64_t>(kProducts / per_block, 2, blocks);
  if (wanted >= blocks) {
    ranges_ = {{0, n}};
  } else {
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t block = i * (blocks - 1) / (wanted - 1);
      ranges_.emplace_back(block * kBlock, std::min(n, (block + 1) * kBlock));
    }
  }
  for (const auto& [n0, n1] : ranges_) channels_ += n1 - n0;
}

std::string Reference::coverage() const {
  const int64_t n = operands_.the_case().shape.n;
  return channels_ == n ? fmt::format("all {} channels", n) : fmt::format("{} of {} channels", channels_, n);
}

const Reference::Expected& Reference::expected(omni_numerics numerics) {
  Expected& e = expected_[numerics == OMNI_NUMERICS_TORCH ? 1 : 0];
  if (e.ready) return e;
  const Case& c = operands_.the_case();
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = static_cast<uint16_t>(numerics);
  query.x_type = OMNI_DTYPE_BF16;
  query.y_type = OMNI_DTYPE_BF16;
  query.max_m = static_cast<uint32_t>(c.m);
  query.weights = operands_.layout();
  query.max_isa = "portable";
  omni_plan* plan = nullptr;
  check(omni_select(&query, &plan), "omni_select (portable)");
  const std::unique_ptr<omni_plan, void (*)(omni_plan*)> owner(plan, omni_plan_destroy);

  std::vector<uint16_t> y(static_cast<size_t>(c.m * c.shape.n));
  size_t workspace_bytes = 0;
  check(omni_workspace_size(plan, query.max_m, &workspace_bytes), "omni_workspace_size");
  const Block workspace(workspace_bytes);
  omni_linear_args args{};
  args.size = sizeof args;
  args.m = query.max_m;
  args.x = operands_.x();
  args.ldx = c.shape.k;
  args.codes = operands_.copy(0).codes;
  args.codes_bytes = operands_.codes_bytes();
  args.scales = operands_.copy(0).scales;
  args.scales_bytes = operands_.scales_bytes();
  args.y = y.data();
  args.ldy = c.shape.n;
  args.workspace = workspace.data();
  args.workspace_bytes = workspace_bytes;
  check(omni_prepare(plan, &args), "omni_prepare");
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t at = n0; at < n1; at += kBlock) parts.emplace_back(at, std::min(n1, at + kBlock));
  }
  std::vector<omni_status> statuses(parts.size(), OMNI_OK);
  operands_.pool().run(static_cast<int64_t>(parts.size()),
                       [&](int64_t i) { statuses[i] = omni_run_portion(plan, &args, parts[i].first, parts[i].second); });
  for (const omni_status status : statuses) check(status, "omni_run_portion (portable)");

  int64_t position = 0;
  e.bits.resize(static_cast<size_t>(channels_ * c.m));
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      const bool by_hand = position % std::max<int64_t>(1, channels_ / kScalarChannels) == 0;
      for (int64_t m = 0; m < c.m; ++m) {
        const uint16_t bits = y[m * c.shape.n + n];
        e.bits[position * c.m + m] = bits;
        if (!by_hand) continue;
        const uint16_t scalar = float_to_bf16(scalar_gemv(operands_.generator(), numerics, operands_.x() + m * c.shape.k, n));
        if (scalar != bits) {
          throw WrongOutput(
              fmt::format("portable tier: y[{}][{}] = {:#06x}, the scalar contract gives {:#06x}", m, n, bits, scalar));
        }
      }
    }
  }
  e.ready = true;
  return e;
}

void Reference::compare_bits(const void* y, bool f32, omni_numerics numerics) {
  const Expected& e = expected(numerics);
  const Case& c = operands_.the_case();
  int64_t position = 0;
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      for (int64_t m = 0; m < c.m; ++m) {
        const int64_t index = m * c.shape.n + n;
        const uint16_t got = f32 ? float_to_bf16(element(y, true, index)) : static_cast<const uint16_t*>(y)[index];
        const uint16_t want = e.bits[position * c.m + m];
        if (got != want) throw WrongOutput(fmt::format("wrong output: y[{}][{}] = {:#06x}, expected {:#06x}", m, n, got, want));
      }
    }
  }
}

// With S = sum |x||w| and u = 2^-9, the unit roundoff of bf16:
//   bf16 weights: each weight moves by at most u|w|, so the sum by u*S;
//   8-bit activations: each x moves by at most half a step, amax / 254, so the sum by amax/254 * sum|w|;
//   both: fp32 accumulation on either side adds at most K * 2^-24 * S each, and the two stores of bf16 u|y| each (2u with slack).
void Reference::compare_bound(const void* y, bool f32, Tolerance tolerance) {
  const Case& c = operands_.the_case();
  const Generator& weights = operands_.generator();
  const int64_t k = c.shape.k;
  const int64_t stride =
      std::max<int64_t>(1, channels_ * c.m * k / (int64_t{1} << 23));  // doubles by hand are slow: 8 million products
  std::vector<double> row(static_cast<size_t>(k));
  int64_t position = 0;
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n, ++position) {
      if (position % stride != 0) continue;
      double sum_weights = 0;
      for (int64_t i = 0; i < k; ++i) {
        uint16_t s = 0;
        uint16_t z = 0;
        weights.scale_zero(i / c.group, n, &s, &z);
        row[i] = static_cast<double>(weights.code(n, i) - 8) * bf16_to_float(s) + bf16_to_float(z);
        sum_weights += std::fabs(row[i]);
      }
      for (int64_t m = 0; m < c.m; ++m) {
        double exact = 0;
        double magnitude = 0;
        double largest = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double x = bf16_to_float(operands_.x()[m * k + i]);
          exact += x * row[i];
          magnitude += std::fabs(x * row[i]);
          largest = std::max(largest, std::fabs(x));
        }
        const double input = tolerance == Tolerance::kBf16Weights ? 0x1p-9 * magnitude : largest / 254 * sum_weights;
        const double bound = input + 2 * static_cast<double>(k) * 0x1p-24 * magnitude + 0x1p-8 * std::fabs(exact);
        const double got = element(y, f32, m * c.shape.n + n);
        if (!(std::fabs(got - exact) <= bound)) {
          throw WrongOutput(fmt::format("wrong output: y[{}][{}] = {}, exact {}, bound {}", m, n, got, exact, bound));
        }
      }
    }
  }
}

Verification Reference::compare_gemv(const void* y, bool f32, Tolerance tolerance) {
  if (tolerance == Tolerance::kGroupBits || tolerance == Tolerance::kTorchBits) {
    compare_bits(y, f32, tolerance == Tolerance::kTorchBits ? OMNI_NUMERICS_TORCH : OMNI_NUMERICS_GROUP);
  } else {
    compare_bound(y, f32, tolerance);
  }
  return {true, fmt::format("{}, {}", name_of(tolerance), coverage())};
}

Verification Reference::compare_pack(const uint8_t* packed) {
  const Generator& w = operands_.generator();
  const int64_t n = w.n;
  const int64_t row_inputs = (w.k + 31) / 32 * 32;  // padded with code 8
  const auto code = [&](int64_t channel, int64_t input) -> uint8_t {
    return channel < n && input < w.k ? w.code(channel, input) : 8;
  };
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t block = n0 / kBlock * kBlock; block < n1; block += kBlock) {
      const int64_t width = std::min(kBlock, (n + 15) / 16 * 16 - block);
      const uint8_t* at = packed + block * row_inputs / 2;
      for (int64_t k = 0; k < row_inputs; ++k) {
        for (int64_t j = 0; j < width / 2; ++j, ++at) {
          const int64_t low = block + (width == kBlock ? j : 2 * j);
          const int64_t high = width == kBlock ? low + 32 : low + 1;
          const auto want = static_cast<uint8_t>(code(low, k) | code(high, k) << 4);
          if (*at != want) {
            throw WrongOutput(
                fmt::format("wrong output: channels {}, {} input {}: {:#04x}, expected {:#04x}", low, high, k, *at, want));
          }
        }
      }
    }
  }
  return {true, fmt::format("byte-equal to the layout's definition, {}", coverage())};
}

Verification Reference::compare_dequant(const uint16_t* out) {
  const Generator& w = operands_.generator();
  for (const auto& [n0, n1] : ranges_) {
    for (int64_t n = n0; n < n1; ++n) {
      for (int64_t k = 0; k < w.k; ++k) {
        const uint16_t want = scalar_dequant(w, n, k);
        const uint16_t got = out[n * w.k + k];
        if (got != want) throw WrongOutput(fmt::format("wrong output: w[{}][{}] = {:#06x}, expected {:#06x}", n, k, got, want));
      }
    }
  }
  return {true, fmt::format("bit-equal to bf16((q - 8) * s + z), {}", coverage())};
}

}  // namespace omnibench
