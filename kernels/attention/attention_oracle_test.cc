// SPDX-License-Identifier: Apache-2.0
// Attention against double precision, with a bound derived from the roundings of the contract; and the calling convention.
#include "kernels/attention/attention_plan.h"
#include "tests/support/abi_check.h"
#include "tests/support/attention_case.h"

namespace okl::test {
namespace {

class AttentionOracle : public KernelTest {};

// Exact softmax(q K^T scale) V of the stored operands, and the bound on what fp32 may make of it. u = 2^-24.
//
//   score     d products and sums, k_scale and scale: |ds| <= (d + 2) u sum_i |q_i k_i| scale
//   exponent  s - m rounds by |s - m| u, and m rises to its last value in steps that round likewise: together at most
//             (max s - min s) u for each weight; every exp is within 1 ulp (2u) and its product rounds (u): one a block and two a
//             segment
//   sums      l: 6 in the tree, 2 a block, 2 a segment; a: 64 fused adds and a product a block, 2 a segment; then 1 / l and a
//   product
//
// Numerator and denominator then differ relatively by at most their weights' errors and their sums': 2 (steps + sums) of
// sum_j p_j |v_j| / l bounds the quotient.
struct Oracle {
  std::vector<double> value, bound;
};

Oracle exact_row(const attention_reference::Sequence& sequence, int64_t t, uint32_t head) {
  const AttentionShape& shape = sequence.in.shape;
  const uint32_t kv_head = head / (shape.heads / shape.kv_heads);
  const std::vector<float> q = sequence.query(t, head);
  const int64_t begin = shape.window == 0 ? 0 : std::max<int64_t>(0, t - shape.window + 1);
  std::vector<double> s;
  double most = -1e300, least = 1e300, error = 0;
  const double u = 0x1p-24, scale = sequence.in.scale();
  for (int64_t j = begin; j <= t; ++j) {
    const attention_reference::Stored& key = sequence.k[j * shape.kv_heads + kv_head];
    const double key_scale = shape.cache == OMNI_DTYPE_S8 ? key.scale : 1.0;
    double dot = 0, magnitude = 0;
    for (uint32_t i = 0; i < shape.dim; ++i) {
      dot += double{q[i]} * key.values[i];
      magnitude += std::fabs(double{q[i]} * key.values[i]);
    }
    s.push_back(dot * key_scale * scale);
    most = std::max(most, s.back());
    least = std::min(least, s.back());
    error = std::max(error, (shape.dim + 2) * u * magnitude * key_scale * scale);
  }
  const int64_t whole_blocks = t / 64 - begin / 64 + 1, whole_segments = t / 1024 - begin / 1024 + 1;
  const auto blocks = static_cast<double>(whole_blocks), segments = static_cast<double>(whole_segments);
  const double exponents = (most - least) * u + 2 * error;
  const double steps = exponents + (blocks + 2 * segments) * 3 * u + 2 * u;
  const double sums = (64 + 3) * blocks * u + 3 * segments * u + 12 * u;
  Oracle oracle = {std::vector<double>(shape.dim), std::vector<double>(shape.dim)};
  double l = 0;
  std::vector<double> absolute(shape.dim);
  for (int64_t j = begin; j <= t; ++j) {
    const attention_reference::Stored& value = sequence.v[j * shape.kv_heads + kv_head];
    const double p = std::exp(s[static_cast<size_t>(j - begin)] - most), v_scale = shape.cache == OMNI_DTYPE_S8 ? value.scale : 1.0;
    l += p;
    for (uint32_t c = 0; c < shape.dim; ++c) {
      oracle.value[c] += p * v_scale * value.values[c];
      absolute[c] += p * std::fabs(v_scale * value.values[c]);
    }
  }
  for (uint32_t c = 0; c < shape.dim; ++c) {
    oracle.value[c] /= l;
    oracle.bound[c] = 2 * (steps + sums) * absolute[c] / l + 1e-37;
  }
  return oracle;
}

TEST_P(AttentionOracle, WithinTheDerivedBound) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const uint64_t h = splitmix64(seed + 5);
    AttentionShape shape;
    shape.cache = row().activation;
    shape.heads = 3;
    shape.dim = 8 + 8 * static_cast<uint32_t>((h >> 8) % 32);
    shape.window = (h & 1) != 0 ? 200 : 0;
    shape.tokens = seed % 6 == 0 ? 2300 : 1 + static_cast<int64_t>((h >> 16) % 400);
    if (shape.tokens > 1000) shape.dim = 32;
    const AttentionInputs in(shape, seed, (h >> 1 & 1) != 0 ? 1.0F : 3.0F);
    AttentionFeed feed;
    feed.from = std::max<int64_t>(0, shape.tokens - 3);
    const std::vector<uint32_t> bits = run_attention_case(in, kernel(), feed);
    const attention_reference::Sequence sequence(in);
    size_t at = 0;
    for (int64_t t = feed.from; t < shape.tokens; ++t) {
      for (uint32_t head = 0; head < shape.heads; ++head) {
        const Oracle oracle = exact_row(sequence, t, head);
        for (uint32_t c = 0; c < shape.dim; ++c, ++at) {
          const double error = std::fabs(std::bit_cast<float>(bits[at]) - oracle.value[c]);
          ASSERT_LE(error, oracle.bound[c]) << shape.text() << " row " << t << " head " << head << " channel " << c;
          worst = std::max(worst, error / oracle.bound[c]);
        }
      }
    }
  }
  EXPECT_GT(worst, 0.0);  // fp32 does round
  RecordProperty("worst_share_of_bound", std::to_string(worst));
}

// Every function of a kernel, with canaries in the callee-saved registers.
TEST_P(AttentionOracle, KeepsTheCallersState) {
  const AttentionKernel& kernel = row().as<Op::kAttention>();
  const omni_dtype type = row().activation;
  for (const int32_t rows : {1, 4, 12, 13}) {
    const int32_t dim = 72;
    const auto record = static_cast<size_t>(record_bytes(static_cast<uint16_t>(type), dim));
    GuardedBuffer cache(2 * record, Flush::kBack, 64, 0), q(static_cast<size_t>(rows * dim) * 2, Flush::kBack, 2, 0);
    GuardedBuffer panel(static_cast<size_t>(q_floats(rows, dim)) * 4, Flush::kBack, 64, 0);
    GuardedBuffer total(static_cast<size_t>(state_floats(rows, dim)) * 4, Flush::kBack, 64, 0);
    GuardedBuffer part(static_cast<size_t>(state_floats(rows, dim)) * 4, Flush::kBack, 64, 0);
    GuardedBuffer out(static_cast<size_t>(rows * dim) * 2, Flush::kBack, 2, 0), keys(100 * dim * 2, Flush::kBack, 2, 0);
    const AttentionUnit unit = {0, 90, 80, rows, rows, dim, 0.1F};
    const AttentionAppend append = {keys.data(), keys.data(), dim * 2, dim * 2,        cache.data() + record,
                                    dim,         10,          54,      OMNI_DTYPE_BF16};
    EXPECT_EQ(AbiTrampoline::call(kernel.append, &append), "");
    const AttentionLoad load = {unit, q.data(), rows * dim * 2, OMNI_DTYPE_BF16, panel.as<float>()};
    EXPECT_EQ(AbiTrampoline::call(kernel.load, &load), "");
    AttentionSegment segment = {unit, panel.as<float>(), cache.data(), static_cast<int64_t>(record), 2, 0, 2, total.as<float>()};
    EXPECT_EQ(AbiTrampoline::call(kernel.segment, &segment), "");
    segment.state = part.as<float>();
    EXPECT_EQ(AbiTrampoline::call(kernel.segment, &segment), "");
    const AttentionMerge merge = {rows, dim, total.as<float>(), part.as<float>()};
    EXPECT_EQ(AbiTrampoline::call(kernel.merge, &merge), "");
    const AttentionStore store = {unit, total.as<float>(), out.data(), rows * dim * 2, OMNI_DTYPE_BF16};
    EXPECT_EQ(AbiTrampoline::call(kernel.store, &store), "");
    for (GuardedBuffer* buffer : {&cache, &q, &panel, &total, &part, &out, &keys}) EXPECT_TRUE(buffer->intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, AttentionOracle, testing::ValuesIn(kernels_of(Op::kAttention)), kernel_test_name);

}  // namespace
}  // namespace okl::test
