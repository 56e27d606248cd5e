// SPDX-License-Identifier: Apache-2.0
// The head norm on every tier: the bits of RMSNorm on each head alone, which rmsnorm_test holds to the contract.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/rmsnorm/headnorm_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

struct Case {
  omni_headnorm_query query = {};
  uint32_t m = 1;
  int64_t extra = 0;  // columns behind each row, NaN
  std::vector<float> x, q_weight, k_weight;

  Case() {
    query.size = sizeof query;
    query.type = OMNI_DTYPE_BF16;
    query.q_heads = 2, query.k_heads = 1, query.head_dim = 128;
    query.eps = 1e-6F;
  }
  int64_t heads() const { return int64_t{query.q_heads} + query.k_heads; }
  int64_t width() const { return heads() * query.head_dim; }
  void fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    x.resize(static_cast<size_t>(m * width()));
    q_weight.resize(query.head_dim), k_weight.resize(query.head_dim);
    for (std::vector<float>* values : {&x, &q_weight, &k_weight}) {
      for (float& value : *values) value = random_value(random, -6, 3);
    }
  }
};

OwnedPlan make_plan(const omni_headnorm_query& query, const char* kernel) {
  omni_headnorm_query named = query;
  named.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_headnorm_select(&named, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// Operands between guards; what lies behind a row must be neither read into a result nor written.
std::vector<uint32_t> run(const Case& c, const char* kernel, Flush flush = Flush::kBack, const omni_parallel* parallel = nullptr) {
  const omni_headnorm_query& q = c.query;
  const int64_t width = c.width(), ld = width + c.extra, m = c.m;
  GuardedBuffer x(static_cast<size_t>((m - 1) * ld + width) * bytes_of_type(q.type), flush, bytes_of_type(q.type), 0xFF);
  GuardedBuffer q_weight(q.head_dim * 4UL, flush, 4), k_weight(q.head_dim * 4UL, flush, 4);
  for (int64_t i = 0; i < m * width; ++i) put(x.data(), q.type, i / width * ld + i % width, c.x[static_cast<size_t>(i)]);
  std::copy(c.q_weight.begin(), c.q_weight.end(), q_weight.as<float>());
  std::copy(c.k_weight.begin(), c.k_weight.end(), k_weight.as<float>());
  q_weight.make_read_only(), k_weight.make_read_only();
  const OwnedPlan plan = make_plan(q, kernel);
  const omni_headnorm_args args = {sizeof args,
                                   c.m,
                                   x.data(),
                                   ld,
                                   q.q_heads > 0 ? q_weight.as<float>() : nullptr,
                                   q.k_heads > 0 ? k_weight.as<float>() : nullptr,
                                   parallel};
  EXPECT_EQ(omni_headnorm_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(x.intact()) << kernel;
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < m * width; ++i) bits.push_back(get_bits(x.data(), q.type, i / width * ld + i % width));
  for (int64_t r = 0; r + 1 < m; ++r) {
    for (int64_t i = width; i < ld; ++i) {
      EXPECT_EQ(get_bits(x.data(), q.type, r * ld + i), q.type == OMNI_DTYPE_F32 ? ~0U : 0xFFFFU) << "padding was written";
    }
  }
  return bits;
}

// RMSNorm by the portable tier, one head a row.
std::vector<uint32_t> reference(const Case& c) {
  omni_rmsnorm_query query = {};
  query.size = sizeof query;
  query.x_type = query.y_type = c.query.type;
  query.weight_type = OMNI_DTYPE_F32;
  query.n = c.query.head_dim;
  query.eps = c.query.eps;
  query.kernel = "rmsnorm_portable";
  omni_plan* made = nullptr;
  EXPECT_EQ(omni_rmsnorm_select(&query, &made), OMNI_OK) << omni_last_error();
  const OwnedPlan plan(made);
  const int64_t n = c.query.head_dim;
  std::vector<uint32_t> bits;
  for (int64_t head = 0; head < c.m * c.heads(); ++head) {
    std::vector<uint8_t> x(static_cast<size_t>(n) * 4), y(static_cast<size_t>(n) * 4);
    for (int64_t i = 0; i < n; ++i) put(x.data(), c.query.type, i, c.x[static_cast<size_t>(head * n + i)]);
    omni_rmsnorm_args args = {};
    args.size = sizeof args;
    args.m = 1;
    args.x = x.data(), args.y = y.data(), args.ldx = args.ldy = n;
    args.weight = head % c.heads() < c.query.q_heads ? c.q_weight.data() : c.k_weight.data();
    EXPECT_EQ(omni_rmsnorm_run(plan.get(), &args), OMNI_OK) << omni_last_error();
    for (int64_t i = 0; i < n; ++i) bits.push_back(get_bits(y.data(), c.query.type, i));
  }
  return bits;
}

class Headnorm : public KernelTest {};

TEST_P(Headnorm, EveryHeadHasTheBitsOfRmsnorm) {
  struct Heads {
    uint32_t q, k;
  };
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const Heads heads : {Heads{2, 1}, {1, 0}, {0, 2}, {16, 8}}) {
      for (const uint32_t head_dim : {1U, 31U, 63U, 64U, 65U, 100U, 128U, 200U, 256U}) {
        Case c;
        c.query.type = type, c.query.q_heads = heads.q, c.query.k_heads = heads.k, c.query.head_dim = head_dim;
        c.m = 1 + head_dim % 3;
        c.extra = head_dim % 5;
        c.fill(head_dim + heads.q);
        ASSERT_EQ(run(c, kernel(), head_dim % 2 == 0 ? Flush::kBack : Flush::kFront), reference(c)) << head_dim << " " << heads.q;
      }
    }
  }
}

// The whole formula once more, in double precision.
TEST_P(Headnorm, IsTheNormOfEachHead) {
  Case c;
  c.query.type = OMNI_DTYPE_F32;
  c.query.eps = 1e-2F;
  c.fill(3);
  const std::vector<uint32_t> y = run(c, kernel());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t head = i / 128;
    double sum = 0;
    for (size_t j = 0; j < 128; ++j) sum += std::pow(static_cast<double>(c.x[head * 128 + j]), 2);
    const double weight = static_cast<double>((head < 2 ? c.q_weight : c.k_weight)[i % 128]);
    const double exact = static_cast<double>(c.x[i]) / std::sqrt(sum / 128 + static_cast<double>(c.query.eps)) * weight;
    // Three chained squares and six levels of the tree, halved by the root, and four roundings behind it.
    ASSERT_LE(std::fabs(static_cast<double>(from_bits(y[i])) - exact), 10 * 0x1p-24 * std::fabs(exact)) << i;
  }
}

// Values near zero and not finite stay in their head.
TEST_P(Headnorm, SpecialHeadsLeaveTheOthersAlone) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const float special :
         {0.0F, -0.0F, 1e-30F, 1e-40F, 3e38F, from_bits(0x7F800000), from_bits(0xFF800000), from_bits(0xFFC12345)}) {
      Case c;
      c.query.type = type, c.query.head_dim = 96;
      c.fill(5);
      std::fill(c.x.begin() + 96, c.x.begin() + 192, std::fabs(special) < 1 ? special : 1.0F);
      c.x[96 + 70] = special;
      ASSERT_EQ(run(c, kernel()), reference(c)) << special;
    }
  }
}

TEST_P(Headnorm, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 4; ++round) {
    Case c;
    c.m = 3 + static_cast<uint32_t>(random() % 30);
    c.query.q_heads = 1 + static_cast<uint32_t>(random() % 16), c.query.k_heads = static_cast<uint32_t>(random() % 9);
    c.query.head_dim = 1 + static_cast<uint32_t>(random() % 200);
    c.extra = static_cast<int64_t>(random() % 70);
    c.fill(random());
    const std::vector<uint32_t> whole = run(c, kernel());
    for (const uint32_t threads : {1U, 2U, 5U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      ASSERT_EQ(run(c, kernel(), Flush::kFront, &parallel), whole);
    }
  }
}

TEST_P(Headnorm, KeepsTheCallersState) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    float x[200] = {}, weight[100] = {};
    const HeadnormRow argument = {x, weight, 2, 100, 1e-6F};
    EXPECT_EQ(AbiTrampoline::call(row().as<Op::kHeadnorm>().row_for(type), &argument), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Headnorm, testing::ValuesIn(kernels_of(Op::kHeadnorm)), kernel_test_name);

TEST(HeadnormArguments, BadQueriesAreRefused) {
  const Case c;
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_headnorm_query changed = c.query;
    change(changed);
    const omni_status status = omni_headnorm_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_headnorm_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headnorm_select(&c.query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.q_heads = q.k_heads = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.head_dim = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.q_heads = q.k_heads = q.head_dim = ~0U; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(select([](auto& q) { q.eps = -1e-6F; }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7FC00000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7F800000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "headnorm_mmx"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "rmsnorm_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(select([](auto& q) { q.kernel = "headnorm_avx2", q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);
}

TEST(HeadnormArguments, BadRunsTouchNothing) {
  Case c;
  c.query.head_dim = 8;
  const OwnedPlan plan = make_plan(c.query, nullptr);
  std::vector<uint16_t> x(50, 0x3F90);
  std::vector<float> weights(17, 2.0F);
  const omni_headnorm_args good = {sizeof good, 2, x.data(), 24, weights.data(), weights.data() + 8, nullptr};
  const auto run_changed = [&](const auto& change, const OwnedPlan& with) {
    omni_headnorm_args args = good;
    change(args);
    const omni_status status = omni_headnorm_run(with.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(x, std::vector<uint16_t>(50, 0x3F90));
    return status;
  };
  EXPECT_EQ(omni_headnorm_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_headnorm_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }, plan), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.x = nullptr; }, plan), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.q_weight = nullptr; }, plan), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.k_weight = nullptr; }, plan), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = 23; }, plan), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = INT64_MAX / 2; }, plan), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([](auto& a) { a.x = static_cast<char*>(a.x) + 1; }, plan), OMNI_ERR_ALIGNMENT);
  const auto odd = [](const float* p) { return reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(p) + 2); };
  EXPECT_EQ(run_changed([&](auto& a) { a.q_weight = odd(a.q_weight); }, plan), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.k_weight = odd(a.k_weight); }, plan), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.x = nullptr; }, plan), OMNI_OK);
  const omni_quantize_query query = {sizeof query, OMNI_DTYPE_BF16, 0, 64, nullptr, nullptr};
  omni_plan* quantize = nullptr;
  ASSERT_EQ(omni_quantize_select(&query, &quantize), OMNI_OK);
  EXPECT_EQ(run_changed([](auto&) {}, OwnedPlan(quantize)), OMNI_ERR_TYPE);
}

}  // namespace
}  // namespace okl::test
