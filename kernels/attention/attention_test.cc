// SPDX-License-Identifier: Apache-2.0
// Every attention row of the registry against the contract, bit for bit: shapes, types, windows, chunks, rings, threads and special
// values.
#include <map>

#include "tests/support/attention_case.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

// Bits by shape and seed: every row of a cache type is held to the same ones, and computing them is most of the time.
const std::vector<uint32_t>& expected_of(const AttentionInputs& in, const std::string& key, int64_t from = 0) {
  static std::map<std::string, std::vector<uint32_t>> known;
  const auto [at, made] = known.try_emplace(in.shape.text() + " " + key);
  if (made) at->second = expected_attention(in, from);
  return at->second;
}

class Attention : public KernelTest {
 protected:
  void expect(const AttentionInputs& in, const std::vector<uint32_t>& expected, const AttentionFeed& feed,
              const std::string& what) {
    EXPECT_EQ(attention_difference(in.shape, run_attention_case(in, kernel(), feed), expected), "")
        << kernel() << " " << in.shape.text() << " " << what;
  }
  omni_dtype cache() const { return row().activation; }
  bool portable() const { return row().required == 0; }
};

omni_dtype either(uint64_t bits) { return (bits & 1) != 0 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16; }

// Chunks of random sizes, the same for the same seed.
std::function<int64_t(int64_t)> random_chunks(uint64_t seed, uint64_t most) {
  return [=](int64_t position) { return static_cast<int64_t>(1 + splitmix64(seed + static_cast<uint64_t>(position)) % most); };
}
std::function<int64_t(int64_t)> chunks_of(int64_t rows) {
  return [=](int64_t) { return rows; };
}

TEST_P(Attention, RandomShapes) {
  const uint32_t dims[] = {8, 16, 24, 40, 64, 72, 80, 96, 128, 136, 200, 248, 256};
  const uint32_t groups[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16};
  const int64_t windows[] = {0, 1, 2, 8, 63, 64, 65, 100};
  for (uint64_t seed = 0; seed < (portable() ? 24 : 60); ++seed) {
    const uint64_t h = splitmix64(seed + 77);
    AttentionShape shape;
    shape.cache = cache();
    shape.q = either(h);
    shape.kv = either(h >> 1);
    shape.out = either(h >> 2);
    shape.kv_heads = 1 + (h >> 3) % 3;
    shape.heads = shape.kv_heads * groups[(h >> 8) % std::size(groups)];
    shape.dim = dims[seed % std::size(dims)];
    shape.window = windows[(h >> 16) % std::size(windows)];
    shape.tokens = 1 + static_cast<int64_t>((h >> 24) % 150);
    if (shape.dim * shape.heads > 1500) shape.tokens = 1 + shape.tokens / 4;
    const AttentionInputs in(shape, seed);
    const std::vector<uint32_t>& expected = expected_of(in, "random " + std::to_string(seed));
    AttentionFeed feed;
    feed.flush = (h >> 32 & 1) != 0 ? Flush::kBack : Flush::kFront;
    feed.pad = static_cast<int64_t>(h >> 33 & 7);
    feed.append_rows = random_chunks(h, 1 + (h >> 40) % 90);
    feed.run_rows = random_chunks(h + 5, 1 + (h >> 48) % 90);
    feed.max_threads = 1 + (h >> 56) % 5;
    uint32_t threads = feed.max_threads;
    const omni_parallel parallel = fresh_threads(&threads), reversed = backwards(threads);
    expect(in, expected, feed, "one thread");
    feed.parallel = threads % 2 == 0 ? &parallel : &reversed;
    expect(in, expected, feed, "threads");
    if (HasFailure()) return;
  }
}

// The experiment of the contract: chunks of 1, 7, 64, 100 and one shot, windows of 8, 100, 512 and none, 2,700 tokens.
TEST_P(Attention, ChunksWindowsAndRings) {
  for (const int64_t window : {0, 8, 100, 512}) {
    AttentionShape shape;
    shape.cache = cache();
    shape.heads = 2;
    shape.dim = 8;
    shape.window = window;
    shape.tokens = portable() ? 1300 : 2700;
    const AttentionInputs in(shape, static_cast<uint64_t>(window), 3.0F);
    const std::vector<uint32_t>& expected = expected_of(in, "chunks");
    std::vector<int64_t> chunks = {1, 100};
    if (!portable()) chunks = {1, 7, 64, 100, shape.tokens};
    for (const int64_t chunk : chunks) {
      AttentionFeed feed;
      feed.append_rows = chunks_of(chunk);
      expect(in, expected, feed, "chunks of " + std::to_string(chunk));
      if (window != 0) {  // a ring with room to spare, of a length that divides nothing
        feed.capacity = (window + chunk + 127) / 64 * 64 + 192;
        expect(in, expected, feed, "larger ring, chunks of " + std::to_string(chunk));
      }
      feed.capacity = 0;
      feed.run_rows = chunks_of(5);
      expect(in, expected, feed, "run by 5 in chunks of " + std::to_string(chunk));
    }
    if (HasFailure()) return;
  }
}

// A long context whose segments are computed in parallel, in more than one wave, and by units of rows.
TEST_P(Attention, SegmentsInAnyOrderOnAnyThread) {
  AttentionShape shape;
  shape.cache = cache();
  shape.heads = 12;
  shape.dim = 64;
  shape.tokens = 46001;
  const AttentionInputs in(shape, 3, 2.0F);
  AttentionFeed feed;
  feed.append_rows = chunks_of(4096);
  feed.from = shape.tokens - 1;
  const std::vector<uint32_t>& expected = expected_of(in, "tail", feed.from);
  for (const uint32_t threads : {1U, 2U, 3U, 8U}) {
    if (portable() && threads != 2) continue;
    uint32_t count = threads;
    const omni_parallel parallel = fresh_threads(&count), reversed = backwards(threads);
    for (const omni_parallel* each : {&parallel, &reversed}) {
      feed.parallel = each;
      feed.max_threads = threads;
      expect(in, expected, feed, std::to_string(threads) + " threads");
      feed.max_threads = 2;
      expect(in, expected, feed, std::to_string(threads) + " threads, planned for 2");
    }
  }
}

TEST_P(Attention, PositionsToAMillion) {
  AttentionShape shape;
  shape.cache = cache();
  shape.heads = 1;
  shape.dim = 8;
  shape.tokens = int64_t{1} << 20;
  const AttentionInputs in(shape, 9);
  AttentionFeed feed;
  feed.append_rows = chunks_of(1 << 16);
  feed.from = shape.tokens - 2;
  uint32_t threads = 2;
  const omni_parallel parallel = fresh_threads(&threads);
  feed.parallel = &parallel;
  feed.max_threads = 2;
  expect(in, expected_of(in, "million", feed.from), feed, "");
}

TEST_P(Attention, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {inf,       -inf,       nan,      0x1.8p127F, -0x1.8p127F, 0x1p-126F,
                          0x1p-133F, -0x1p-130F, 0x1p-57F, 0x1p-55F,   0.0F,        -0.0F};
  for (uint64_t seed = 0; seed < (portable() ? 40 : 100); ++seed) {
    const uint64_t h = splitmix64(seed * 31 + 1);
    AttentionShape shape;
    shape.cache = cache();
    shape.q = either(h);
    shape.kv = either(h >> 1);
    shape.out = either(h >> 2);
    shape.heads = 1 + (h >> 3) % 13;
    shape.dim = 8 + 8 * ((h >> 8) % 12);
    shape.window = (h >> 12 & 1) != 0 ? 70 : 0;
    shape.tokens = 140;
    AttentionInputs in(shape, seed, (h >> 13 & 1) != 0 ? 1.0F : 40.0F);
    // A few special elements in one of the three operands; or whole rows, which make -Inf scores and subnormal sums.
    std::vector<float>& to = (h >> 14) % 3 == 0 ? in.q : (h >> 14) % 3 == 1 ? in.k : in.v;
    const omni_dtype type = &to == &in.q ? shape.q : shape.kv;
    const bool rows = (h >> 20 & 1) != 0;
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t g = splitmix64(h + i);
      const float value = as_stored(values[g % std::size(values)], type);
      const size_t at = (g >> 8) % to.size();
      if (!rows) {
        to[at] = value;
      } else {
        for (size_t c = 0; c < shape.dim; ++c) to[at / shape.dim * shape.dim + c] = value;
      }
    }
    AttentionFeed feed;
    feed.append_rows = random_chunks(h, 80);
    expect(in, expected_of(in, "special " + std::to_string(seed)), feed, "seed " + std::to_string(seed));
    if (HasFailure()) return;
  }
}

// Below 2^-56 (2^-119 against int8) an element of q or of a bf16 key is a zero, however large its partner; just above it counts.
TEST_P(Attention, ScrubbedElementsDoNotScore) {
  const float limit = cache() == OMNI_DTYPE_S8 ? 0x1p-119F : 0x1p-56F;
  for (const bool in_q : {true, false}) {
    for (const float factor : {0.75F, 1.0F}) {
      AttentionShape shape;
      shape.cache = cache();
      shape.dim = 16;
      shape.heads = 3;
      shape.tokens = 70;
      AttentionInputs in(shape, 6);
      std::vector<float>&small = in_q ? in.q : in.k, &large = in_q ? in.k : in.q;
      for (float& x : small) x = std::copysign(factor * limit, x);
      for (float& x : large) x = x / limit;
      AttentionFeed feed;
      feed.append_rows = chunks_of(9);
      const std::string what = std::string(in_q ? "q " : "k ") + std::to_string(factor);
      expect(in, expected_of(in, "scrub " + what), feed, what);
    }
  }
}

// All keys of a block, of a segment and of everything may score -Inf: only the last makes a NaN row.
TEST_P(Attention, ScoresOfMinusInfinity) {
  for (const int64_t dead : {63, 64, 128, 1024, 1090}) {
    AttentionShape shape;
    shape.cache = cache();
    shape.heads = 3;
    shape.dim = 16;
    shape.tokens = 1100;
    AttentionInputs in(shape, 4);
    // int8 codes are finite: there the score overflows in the scale.
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (uint32_t c = 0; c < shape.dim; ++c) {
        in.k[t * shape.dim + c] = t < dead ? -0x1p127F : 0.5F;
        if (t == 0 && dead >= 64) in.v[c] = std::numeric_limits<float>::infinity();  // in a block that is no step
      }
    }
    for (float& x : in.q) x = 64.0F;
    AttentionFeed feed;
    feed.append_rows = chunks_of(100);
    const std::vector<uint32_t>& expected = expected_of(in, "dead " + std::to_string(dead));
    EXPECT_EQ(expected.front(), 0x7FC00000U);
    EXPECT_TRUE(std::isfinite(std::bit_cast<float>(expected.back())));
    expect(in, expected, feed, "dead " + std::to_string(dead));
    if (HasFailure()) return;
  }
}

// Tokens taken back and written anew leave no trace.
TEST_P(Attention, TakingTokensBack) {
  AttentionShape shape;
  shape.cache = cache();
  shape.window = 50;
  shape.tokens = 300;
  shape.dim = 32;
  const AttentionInputs in(shape, 1), other(shape, 2);
  const std::vector<uint32_t>& expected = expected_of(in, "last", 299);
  const OwnedPlan plan = make_attention_plan(attention_query(shape, 1, 1, kernel()));
  int64_t capacity = 0;
  ASSERT_EQ(omni_kv_cache_ring(shape.window + 4, 5, &capacity), OMNI_OK);  // room for 4 tokens to be taken back
  size_t bytes = 0;
  ASSERT_EQ(omni_kv_cache_size(shape.cache, 1, shape.dim, capacity, &bytes), OMNI_OK);
  GuardedBuffer memory(bytes, Flush::kBack, 64, 0xFF);
  omni_kv_cache cache;
  ASSERT_EQ(omni_kv_cache_init(&cache, shape.cache, 1, shape.dim, capacity, memory.data(), bytes), OMNI_OK);
  const omni_parallel alone = one_thread();
  const auto append = [&](const AttentionInputs& from, int64_t position) {
    GuardedRows k(1, shape.dim, shape.dim, shape.kv, Flush::kBack), v(1, shape.dim, shape.dim, shape.kv, Flush::kBack);
    k.set(0, from.k_at(position, 0));
    v.set(0, from.v_at(position, 0));
    const omni_attention_append_args args = {sizeof args, 1, position, &cache, k.data(), shape.dim, v.data(), shape.dim, &alone};
    ASSERT_EQ(omni_attention_append(plan.get(), &args), OMNI_OK) << omni_last_error();
  };
  for (int64_t t = 0; t < shape.tokens; ++t) {
    append(in, t);
    for (int64_t wrong = t + 1; wrong < std::min(t + 5, shape.tokens); ++wrong) append(other, wrong);
    cache.end = t + 1;
  }
  GuardedRows q(1, 4 * shape.dim, 4 * shape.dim, shape.q, Flush::kBack),
      out(1, 4 * shape.dim, 4 * shape.dim, shape.out, Flush::kBack);
  q.set(0, in.q_at(299, 0));
  ASSERT_EQ(omni_attention_workspace_size(plan.get(), 1, &bytes), OMNI_OK);
  GuardedBuffer workspace(bytes, Flush::kBack, 64, 0xFF);
  const omni_attention_args args = {sizeof args,      1,     299,   &cache, q.data(), 4 * shape.dim, out.data(), 4 * shape.dim,
                                    workspace.data(), bytes, &alone};
  ASSERT_EQ(omni_attention_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(out.bits(0, static_cast<int64_t>(i)), expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Rows, Attention, testing::ValuesIn(kernels_of(Op::kAttention)), kernel_test_name);

}  // namespace
}  // namespace okl::test
