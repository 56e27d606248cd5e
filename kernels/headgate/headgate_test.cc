// SPDX-License-Identifier: Apache-2.0
// The head gate on every tier against the contract in scalar form, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/headgate/headgate_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

struct Case {
  omni_headgate_query query = {};
  uint32_t m = 1;
  int64_t extra = 0;  // columns behind rows, NaN
  bool has_bias = false, wants_gates = true;
  std::vector<float> x, weights, bias, values;

  Case() {
    query.size = sizeof query;
    query.x_type = query.weight_type = query.value_type = OMNI_DTYPE_BF16;
    query.activation = OMNI_HEADGATE_SIGMOID;
    query.heads = 8, query.k = 64, query.head_dim = 32;
  }
  bool pairs() const { return query.x_type == OMNI_DTYPE_BF16 && query.weight_type == OMNI_DTYPE_BF16; }
  int64_t width() const { return query.heads * query.head_dim; }
  void fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    x.resize(static_cast<size_t>(m * query.k)), weights.resize(static_cast<size_t>(query.heads * query.k));
    bias.resize(query.heads), values.resize(static_cast<size_t>(m * width()));
    for (float& value : x) value = random_value(random, -6, 2);
    for (float& value : weights) value = random_value(random, -8, -2);
    for (float& value : bias) value = random_value(random, -4, 1);
    for (float& value : values) value = random_value(random, -6, 3);
  }
};

float stored(float value, uint16_t type) { return type == OMNI_DTYPE_BF16 ? bf16_to_float(bf16_round_ieee(value)) : value; }
float scrubbed(float value) { return std::fabs(value) < 0x1p-56F ? 0.0F : value; }

float reference_sum(const Case& c, size_t r, size_t h) {
  const auto k = static_cast<size_t>(c.query.k);
  const auto x = [&](size_t i) { return i < k ? stored(c.x[r * k + i], c.query.x_type) : 0.0F; };
  const auto w = [&](size_t i) { return i < k ? stored(c.weights[h * k + i], c.query.weight_type) : 0.0F; };
  if (!c.pairs()) {
    float sum = 0;
    for (size_t i = 0; i < k; ++i) sum = std::fma(x(i), w(i), sum);
    return sum;
  }
  float lanes[16] = {};
  for (size_t i = 0; i < (k + 31) / 32 * 32; i += 2) {
    float& d = lanes[i / 2 % 16];
    d = std::fma(scrubbed(x(i + 1)), scrubbed(w(i + 1)), d);
    d = std::fma(scrubbed(x(i)), scrubbed(w(i)), d);
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

struct Output {
  std::vector<uint32_t> gates, out;  // bits
};

OwnedPlan make_plan(const omni_headgate_query& query, const char* kernel) {
  omni_headgate_query named = query;
  named.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_headgate_select(&named, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

GuardedBuffer packed_weights(const Case& c, Flush flush) {
  size_t bytes = 0;
  EXPECT_EQ(omni_headgate_packed_size(&c.query, &bytes), OMNI_OK) << omni_last_error();
  GuardedBuffer packed(bytes, flush, 64);
  const int64_t ld = c.query.k + 3, heads = c.query.heads, k = c.query.k;
  GuardedBuffer source(static_cast<size_t>((heads - 1) * ld + k) * bytes_of_type(c.query.weight_type), flush,
                       bytes_of_type(c.query.weight_type), 0xFF);
  for (int64_t i = 0; i < heads * k; ++i)
    put(source.data(), c.query.weight_type, i / k * ld + i % k, c.weights[static_cast<size_t>(i)]);
  EXPECT_EQ(omni_headgate_pack(&c.query, source.data(), ld, packed.data(), packed.size()), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(packed.intact());
  packed.make_read_only();
  return packed;
}

Output run(const Case& c, const char* kernel, Flush flush = Flush::kBack, const omni_parallel* parallel = nullptr) {
  const omni_headgate_query& q = c.query;
  const int64_t ldx = q.k + c.extra, ld = c.width() + c.extra, ld_gates = q.heads + c.extra, m = c.m;
  const bool multiplies = q.value_type != OMNI_DTYPE_NONE;
  const size_t value_bytes = bytes_of_type(q.value_type);
  GuardedBuffer x(static_cast<size_t>((m - 1) * ldx + q.k) * bytes_of_type(q.x_type), flush, bytes_of_type(q.x_type), 0xFF);
  GuardedBuffer values(multiplies ? static_cast<size_t>((m - 1) * ld + c.width()) * value_bytes : 4, flush, value_bytes, 0xFF);
  GuardedBuffer out(multiplies ? static_cast<size_t>((m - 1) * ld + c.width()) * value_bytes : 4, flush, value_bytes);
  GuardedBuffer gates(static_cast<size_t>((m - 1) * ld_gates + q.heads) * 4, flush, 4);
  GuardedBuffer bias = GuardedBuffer::copy_of(std::span<const float>(c.bias), flush);
  for (int64_t i = 0; i < m * q.k; ++i) put(x.data(), q.x_type, i / q.k * ldx + i % q.k, c.x[static_cast<size_t>(i)]);
  for (int64_t i = 0; multiplies && i < m * c.width(); ++i) {
    put(values.data(), q.value_type, i / c.width() * ld + i % c.width(), c.values[static_cast<size_t>(i)]);
  }
  x.make_read_only();
  values.make_read_only();
  const GuardedBuffer packed = packed_weights(c, flush);
  const OwnedPlan plan = make_plan(q, kernel);
  omni_headgate_args args = {};
  args.size = sizeof args;
  args.m = c.m;
  args.x = x.data(), args.ldx = ldx;
  args.weights = packed.data(), args.weights_bytes = packed.size();
  args.bias = c.has_bias ? bias.as<float>() : nullptr;
  args.gates = c.wants_gates ? gates.as<float>() : nullptr, args.ld_gates = ld_gates;
  args.values = multiplies ? values.data() : nullptr, args.ld_values = ld;
  args.out = multiplies ? out.data() : nullptr, args.ld_out = ld;
  args.parallel = parallel;
  EXPECT_EQ(omni_headgate_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(gates.intact() && out.intact());
  Output result;
  for (int64_t i = 0; i < m * q.heads; ++i)
    result.gates.push_back(get_bits(gates.data(), OMNI_DTYPE_F32, i / q.heads * ld_gates + i % q.heads));
  for (int64_t i = 0; multiplies && i < m * c.width(); ++i) {
    result.out.push_back(get_bits(out.data(), q.value_type, i / c.width() * ld + i % c.width()));
  }
  return result;
}

std::string describe(const Case& c) {
  char text[160];
  std::snprintf(text, sizeof text, "k=%ld heads=%u head_dim=%ld m=%u x=%u w=%u v=%u activation=%u", static_cast<long>(c.query.k),
                c.query.heads, static_cast<long>(c.query.head_dim), c.m, c.query.x_type, c.query.weight_type, c.query.value_type,
                c.query.activation);
  return text;
}

// Sums exactly; activations within their ulp here, and exactly against the portable tier elsewhere; products exactly from the
// gates.
void expect_reference(const Case& c, const Output& found, const char* kernel) {
  for (size_t r = 0; r < c.m; ++r) {
    for (size_t h = 0; h < c.query.heads; ++h) {
      float sum = reference_sum(c, r, h);
      if (c.has_bias) sum += c.bias[h];
      const float gate = from_bits(found.gates[r * c.query.heads + h]);
      if (std::isnan(sum)) {
        ASSERT_EQ(std::bit_cast<uint32_t>(gate), kF32NaN) << kernel << " " << describe(c);
      } else if (c.query.activation == OMNI_HEADGATE_LINEAR) {
        ASSERT_TRUE(same_bits(gate, sum)) << kernel << " " << describe(c) << " row " << r << " head " << h << ": " << gate << " "
                                          << sum;
      } else {
        double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(sum)));
        if (c.query.activation == OMNI_HEADGATE_SILU) exact *= static_cast<double>(sum);
        ASSERT_NEAR(gate, exact, 2.5 * 0x1p-23 * std::fabs(exact) + 0x1p-126) << kernel << " " << describe(c);
      }
      for (size_t i = 0; i < static_cast<size_t>(c.query.head_dim); ++i) {
        const size_t at = (r * c.query.heads + h) * static_cast<size_t>(c.query.head_dim) + i;
        const float product = stored(c.values[at], c.query.value_type) * gate;
        const uint32_t expected = c.query.value_type == OMNI_DTYPE_BF16 ? bf16_round_group(product)
                                  : std::isnan(product)                 ? kF32NaN
                                                                        : std::bit_cast<uint32_t>(product);
        ASSERT_EQ(found.out[at], expected) << kernel << " " << describe(c) << " value " << at;
      }
    }
  }
}

class Headgate : public KernelTest {};

TEST_P(Headgate, EveryTypeAndActivation) {
  for (const uint16_t x : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t weight : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const uint16_t value : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_NONE}) {
        for (const uint16_t activation : {OMNI_HEADGATE_LINEAR, OMNI_HEADGATE_SIGMOID, OMNI_HEADGATE_SILU}) {
          for (const int64_t k : {1, 31, 64, 95, 200}) {
            Case c;
            c.query.x_type = x, c.query.weight_type = weight, c.query.value_type = value, c.query.activation = activation;
            c.query.k = k, c.query.heads = static_cast<uint32_t>(4 + k % 29),
            c.query.head_dim = value == OMNI_DTYPE_NONE ? 0 : 8 + k;
            c.m = 1 + static_cast<uint32_t>(k % 2), c.extra = k % 4, c.has_bias = k % 3 == 1;
            c.fill(static_cast<uint64_t>(k) + activation);
            const Output found = run(c, kernel(), k % 2 == 0 ? Flush::kBack : Flush::kFront);
            expect_reference(c, found, kernel());
            if (HasFatalFailure()) return;
            ASSERT_EQ(found.gates, run(c, "headgate_portable").gates) << describe(c);
          }
        }
      }
    }
  }
}

TEST_P(Headgate, EveryNumberOfHeadsAndEveryLength) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (uint32_t heads = 1; heads <= 40; ++heads) {
      Case c;
      c.query.x_type = c.query.weight_type = type;
      c.query.activation = OMNI_HEADGATE_LINEAR;
      c.query.heads = heads, c.query.k = 1 + heads * 7, c.query.head_dim = heads;
      c.fill(heads);
      expect_reference(c, run(c, kernel()), kernel());
      if (HasFatalFailure()) return;
    }
  }
  for (int64_t k = 1; k < 140; ++k) {
    Case c;
    c.query.activation = OMNI_HEADGATE_LINEAR;
    c.query.k = k, c.query.heads = 5;
    c.fill(static_cast<uint64_t>(k));
    expect_reference(c, run(c, kernel()), kernel());
    if (HasFatalFailure()) return;
  }
}

// What VDPBF16PS would flush is scrubbed first, on both sides; NaN and infinities stay in their head and row.
TEST_P(Headgate, EdgesOfTheScrub) {
  Case c;
  c.query.activation = OMNI_HEADGATE_LINEAR;
  c.m = 3;
  c.fill(1);
  const float edges[] = {0x1p-56F, 0x1p-57F, -0x1p-56F, -0x1.fep-57F, 0x1p-126F, from_bits(0x00010000), 0x1p+120F, -0.0F};
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (i % 3 == 0) c.x[i] = edges[i / 3 % 8];
  }
  for (size_t i = 0; i < c.weights.size(); ++i) {
    if (i % 2 == 0) c.weights[i] = edges[i / 2 % 7];
  }
  // A row of products at the scrub's edge only.
  for (size_t i = 0; i < 64; ++i) c.x[64 + i] = edges[i % 6];
  expect_reference(c, run(c, kernel()), kernel());
  c.x[64 + 17] = from_bits(0x7F800000), c.weights[2 * 64 + 17] = 0.0F;
  c.x[64 + 40] = from_bits(0xFFC10000);
  expect_reference(c, run(c, kernel()), kernel());
  for (const uint16_t activation : {OMNI_HEADGATE_SIGMOID, OMNI_HEADGATE_SILU}) {
    c.query.activation = activation;
    const Output found = run(c, kernel());
    for (uint32_t h = 0; h < 8; ++h) EXPECT_EQ(found.gates[8 + h], kF32NaN);
    EXPECT_EQ(found.gates, run(c, "headgate_portable").gates);
  }
}

// With weights of zero the sigmoid gate is one half of every value.
TEST_P(Headgate, ZeroWeightsHalveTheOutput) {
  Case c;
  c.fill(3);
  std::fill(c.weights.begin(), c.weights.end(), 0.0F);
  const Output found = run(c, kernel());
  for (const uint32_t gate : found.gates) EXPECT_EQ(from_bits(gate), 0.5F);
  c.query.activation = OMNI_HEADGATE_SILU;
  for (const uint32_t gate : run(c, kernel()).gates) EXPECT_EQ(gate, 0U);
}

TEST_P(Headgate, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 4; ++round) {
    Case c;
    c.m = 2 + static_cast<uint32_t>(random() % 20);
    c.query.k = 1 + static_cast<int64_t>(random() % 1500), c.query.heads = 4 + static_cast<uint32_t>(random() % 29);
    c.query.head_dim = 8 + static_cast<int64_t>(random() % 120);
    c.extra = static_cast<int64_t>(random() % 9), c.wants_gates = true;
    c.fill(random());
    const Output whole = run(c, kernel());
    for (const uint32_t threads : {1U, 3U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      const Output other = run(c, kernel(), Flush::kFront, &parallel);
      ASSERT_EQ(other.gates, whole.gates);
      ASSERT_EQ(other.out, whole.out);
    }
    c.wants_gates = false;
    ASSERT_EQ(run(c, kernel()).out, whole.out);
    const auto r = static_cast<int64_t>(random() % c.m);
    Case one = c;
    one.m = 1, one.wants_gates = true;
    one.x.assign(c.x.begin() + r * c.query.k, c.x.begin() + (r + 1) * c.query.k);
    one.values.assign(c.values.begin() + r * c.width(), c.values.begin() + (r + 1) * c.width());
    const Output alone = run(one, kernel());
    ASSERT_TRUE(std::equal(alone.gates.begin(), alone.gates.end(), whole.gates.begin() + r * c.query.heads));
    ASSERT_TRUE(std::equal(alone.out.begin(), alone.out.end(), whole.out.begin() + r * c.width()));
  }
}

TEST_P(Headgate, InPlace) {
  Case c;
  c.query.head_dim = 50;
  c.fill(4);
  const Output expected = run(c, kernel());
  std::vector<uint16_t> x(64), values(8 * 50);
  for (size_t i = 0; i < x.size(); ++i) x[i] = bf16_round_ieee(c.x[i]);
  for (size_t i = 0; i < values.size(); ++i) values[i] = bf16_round_ieee(c.values[i]);
  const GuardedBuffer packed = packed_weights(c, Flush::kBack);
  const OwnedPlan plan = make_plan(c.query, kernel());
  omni_headgate_args args = {};
  args.size = sizeof args, args.m = 1;
  args.x = x.data(), args.ldx = 64;
  args.weights = packed.data(), args.weights_bytes = packed.size();
  args.values = args.out = values.data(), args.ld_values = args.ld_out = 400;
  ASSERT_EQ(omni_headgate_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], expected.out[i]);
}

TEST_P(Headgate, KeepsTheCallersState) {
  for (const uint16_t x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t activation : {OMNI_HEADGATE_LINEAR, OMNI_HEADGATE_SIGMOID, OMNI_HEADGATE_SILU}) {
      const HeadgateSteps steps = row().as<Op::kHeadgate>().steps({x_type, OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, activation});
      alignas(64) static uint16_t weights[40 * 64];
      float x[40] = {}, bias[5] = {}, gates[gate_room(5)];
      uint16_t values[5 * 20] = {};
      const HeadgateRow argument = {x, weights, bias, gates, values, values, 40, 5, 20};
      EXPECT_EQ(AbiTrampoline::call(steps.gates, &argument), "");
      EXPECT_EQ(AbiTrampoline::call(steps.multiply, &argument), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Headgate, testing::ValuesIn(kernels_of(Op::kHeadgate)), kernel_test_name);

TEST(HeadgateArguments, BadOnesAreRefusedAndTouchNothing) {
  Case c;
  c.fill(1);
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_headgate_query changed = c.query;
    change(changed);
    const omni_status status = omni_headgate_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_headgate_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headgate_select(&c.query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.weight_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.value_type = OMNI_DTYPE_U8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.activation = 3; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.heads = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.heads = 1025; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.k = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.head_dim = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.value_type = OMNI_DTYPE_NONE; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.k = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(select([](auto& q) { q.head_dim = INT64_MAX / 8; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(select([](auto& q) { q.kernel = "headgate"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "headgate_avx2", q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);

  size_t bytes = 0;
  ASSERT_EQ(omni_headgate_packed_size(&c.query, &bytes), OMNI_OK);
  ASSERT_EQ(bytes, 8U * 64 * 2);
  alignas(64) static uint8_t packed[8 * 64 * 2 + 1];
  std::vector<uint16_t> weights(513, 0x3F80);
  std::memset(packed, 0x5A, sizeof packed);
  const auto pack = [&](const void* source, int64_t ld, void* to, size_t size) {
    const omni_status status = omni_headgate_pack(&c.query, source, ld, to, size);
    for (const uint8_t byte : packed) EXPECT_EQ(byte, 0x5A);
    return status;
  };
  EXPECT_EQ(omni_headgate_packed_size(nullptr, &bytes), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headgate_packed_size(&c.query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headgate_pack(nullptr, weights.data(), 64, packed, bytes), OMNI_ERR_NULL);
  EXPECT_EQ(pack(nullptr, 64, packed, bytes), OMNI_ERR_NULL);
  EXPECT_EQ(pack(weights.data(), 64, nullptr, bytes), OMNI_ERR_NULL);
  EXPECT_EQ(pack(weights.data(), 63, packed, bytes), OMNI_ERR_STRIDE);
  EXPECT_EQ(pack(weights.data(), 64, packed, bytes - 1), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(pack(weights.data(), 64, packed + 1, bytes), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(pack(reinterpret_cast<const char*>(weights.data()) + 1, 64, packed, bytes), OMNI_ERR_ALIGNMENT);

  const OwnedPlan plan = make_plan(c.query, nullptr);
  std::vector<uint16_t> x(129, 0x3F80), values(513, 0x3F80), out(513, 0x1234);
  std::vector<float> gates(17, 5.0F);
  omni_headgate_args good = {};
  good.size = sizeof good, good.m = 2;
  good.x = x.data(), good.ldx = 64;
  good.weights = packed, good.weights_bytes = bytes;
  good.gates = gates.data(), good.ld_gates = 8;
  good.values = values.data(), good.ld_values = 256;
  good.out = out.data(), good.ld_out = 256;
  const auto run_changed = [&](const auto& change) {
    omni_headgate_args args = good;
    change(args);
    const omni_status status = omni_headgate_run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(out, std::vector<uint16_t>(513, 0x1234));
    EXPECT_EQ(gates, std::vector<float>(17, 5.0F));
    return status;
  };
  const auto odd = [](auto* pointer) { return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + 1); };
  EXPECT_EQ(omni_headgate_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headgate_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.weights = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.values = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.out = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_gates = 7; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_values = 255; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_out = 255; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_out = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([](auto& a) { --a.weights_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(run_changed([&](auto& a) { a.x = odd(a.x); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.weights = odd(a.weights); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.bias = odd(a.gates); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.gates = odd(a.gates); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.out = odd(a.out); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.x = nullptr; }), OMNI_OK);
  c.query.value_type = OMNI_DTYPE_NONE, c.query.head_dim = 0;
  const OwnedPlan gates_only = make_plan(c.query, nullptr);
  omni_headgate_args args = good;
  args.gates = nullptr;
  EXPECT_EQ(omni_headgate_run(gates_only.get(), &args), OMNI_ERR_NULL);
}

}  // namespace
}  // namespace okl::test
