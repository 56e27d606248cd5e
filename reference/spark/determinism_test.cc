// SPDX-License-Identifier: Apache-2.0
// The logits of a weight form have one set of bits: on every tier, for any threads, for any cut into chunks and calls, whether the
// residual is added in the norm or in the linear layer, watched or not. Their SHA-256 is kept here, so that it also holds over
// time.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/pack/sha256.h"
#include "reference/spark/decoder.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/threads.h"
#include "tests/support/tiny_spark.h"

namespace ref::spark {
namespace {

using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

// Windows are 8: a ring of 64 slots wraps twice when chunks are short.
constexpr size_t kTokens = 150;
constexpr int64_t kContext = 192;

struct Form {
  const char* name;
  const char* dtype;  // of the checkpoint
  WeightType weights;
  bool symmetric;
  HeadType head;
  const char* digest;  // of the logits with a bf16 cache
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

// 160 is no multiple of the group, so that down_proj ends in a short one.
std::shared_ptr<const ModelWeights> make_model(const Form& form) {
  TinySpark model;
  model.layers = 5;
  model.hidden = 128;
  model.intermediate = 176;
  model.head_dim = 32;
  model.vocabulary = 200;
  model.bias = true;
  model.dtype = form.dtype;
  const TemporaryDirectory directory;
  model.write(directory / "m");
  PackOptions options;
  options.weights = form.weights;
  options.group = 32;
  options.symmetric = form.symmetric;
  options.head = form.head;
  options.quantiser = Quantiser::kNearest;
  return pack_in_memory(Checkpoint::open(directory / "m"), options, nullptr, {}, nullptr);
}

std::vector<int32_t> tokens() {
  std::vector<int32_t> ids(kTokens);
  uint32_t state = 1;
  for (int32_t& id : ids) id = static_cast<int32_t>((state = state * 1664525 + 1013904223) >> 8) % 200;
  return ids;
}

// Logits of every token; the sequence is fed in calls of the given sizes, the last of them over and over.
std::vector<float> logits_of(const std::shared_ptr<const ModelWeights>& model, DecoderOptions options,
                             const std::vector<size_t>& calls = {kTokens}, Observer* observer = nullptr) {
  options.context = kContext;
  Decoder decoder(model, options);
  const std::vector<int32_t> ids = tokens();
  std::vector<float> logits(kTokens * 200);
  for (size_t done = 0, call = 0; done < kTokens; ++call) {
    const size_t count = std::min(calls[std::min(call, calls.size() - 1)], kTokens - done);
    decoder.forward({&ids[done], count}, Rows::kAll, {&logits[done * 200], count * 200}, observer);
    done += count;
  }
  return logits;
}

testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return testing::AssertionFailure() << "token " << i / 200 << ", logit " << i % 200 << ": " << a[i] << " and " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

std::string digest_of(const std::vector<float>& logits) {
  Sha256 sha;
  sha.add(std::as_bytes(std::span(logits)));
  return sha.finish();
}

class Determinism : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override { model_ = make_model(GetParam()); }
  // Runs `check` for each type of cache, with the options to start from and the logits that they give.
  template <typename Check>
  void for_each_cache(const Check& check) {
    for (const omni_dtype cache : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8}) {
      SCOPED_TRACE("cache type " + std::to_string(cache));
      DecoderOptions options;
      options.cache = cache;
      check(options, logits_of(model_, options));
    }
  }
  std::shared_ptr<const ModelWeights> model_;
};

TEST_P(Determinism, OverTime) {
  const std::vector<float> logits = logits_of(model_, {});
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_EQ(digest_of(logits), GetParam().digest);
}

TEST_P(Determinism, OnEveryTier) {
  for_each_cache([&](DecoderOptions options, const std::vector<float>& expected) {
    for (const char* tier : {"portable", "avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16", "amxint8", "amxbf16"}) {
      options.max_isa = tier;
      EXPECT_TRUE(same_bits(logits_of(model_, options), expected)) << tier;
    }
  });
}

TEST_P(Determinism, ForAnyThreads) {
  for_each_cache([&](DecoderOptions options, const std::vector<float>& expected) {
    for (const uint32_t threads : {1u, 2u, 3u, 4u}) {
      omni_pool* pool = nullptr;
      ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK);
      omni_parallel parallel = {sizeof parallel, 0, nullptr, nullptr};
      ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
      options.parallel = &parallel;
      EXPECT_TRUE(same_bits(logits_of(model_, options), expected)) << threads << " threads";
      omni_pool_destroy(pool);
    }
    const omni_parallel backwards = okl::test::backwards(5);
    options.parallel = &backwards;
    EXPECT_TRUE(same_bits(logits_of(model_, options), expected)) << "backwards";
    const uint32_t threads = 3;
    const omni_parallel fresh = okl::test::fresh_threads(&threads);
    options.parallel = &fresh;
    EXPECT_TRUE(same_bits(logits_of(model_, options, {64}), expected)) << "fresh threads";
  });
}

TEST_P(Determinism, ForAnyCut) {
  for_each_cache([&](DecoderOptions options, const std::vector<float>& expected) {
    for (const int64_t chunk : {1, 3, 7, 64, 512}) {
      options.chunk = chunk;
      EXPECT_TRUE(same_bits(logits_of(model_, options), expected)) << "chunks of " << chunk;
      EXPECT_TRUE(same_bits(logits_of(model_, options, {25, 1, 3, 7, 8, 9, 1}), expected))
          << "calls of many sizes, chunk " << chunk;
    }
    options.chunk = 512;
    EXPECT_TRUE(same_bits(logits_of(model_, options, {1}), expected)) << "token by token";
  });
}

class Watcher final : public Observer {
 public:
  void tensor(const std::string&, int64_t, int64_t rows, int64_t, omni_dtype, const void*, int64_t) override { seen += rows; }
  int64_t seen = 0;
};

TEST_P(Determinism, FusedOrNotWatchedOrNot) {
  for_each_cache([&](DecoderOptions options, const std::vector<float>& expected) {
    Watcher watcher;
    EXPECT_TRUE(same_bits(logits_of(model_, options, {kTokens}, &watcher), expected)) << "watched";
    EXPECT_GT(watcher.seen, 0);
    options.fused_norm = false;
    EXPECT_TRUE(same_bits(logits_of(model_, options), expected)) << "separate";
    EXPECT_TRUE(same_bits(logits_of(model_, options, {40}, &watcher), expected)) << "separate and watched";
  });
}

// The last layer computes only the rows that get logits; that must not show.
TEST_P(Determinism, WhicheverRowsGetLogits) {
  for_each_cache([&](DecoderOptions options, const std::vector<float>& expected) {
    options.context = kContext;
    options.chunk = 64;
    const std::vector<int32_t> ids = tokens();
    for (const bool fused : {true, false}) {
      options.fused_norm = fused;
      Decoder decoder(model_, options);
      std::vector<float> last(200);
      decoder.forward({ids.data(), 100}, Rows::kNone, {});
      decoder.forward({&ids[100], 48}, Rows::kLast, last);
      EXPECT_TRUE(same_bits(last, {expected.begin() + 147 * 200, expected.begin() + 148 * 200}));
      decoder.forward({&ids[148], 2}, Rows::kLast, last);
      EXPECT_TRUE(same_bits(last, {expected.begin() + 149 * 200, expected.end()}));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, Determinism,
                         testing::Values(Form{"w16", "BF16", WeightType::kBf16, true, HeadType::kBf16,
                                              "7e0ea1671b0a5764279041d704171634a4dc0be79e15a448c411ae96d529bcc9"},
                                         Form{"w32", "F32", WeightType::kKeep, true, HeadType::kKeep,
                                              "ab881531d34ad70a1ee20368dd0bae25d663fabc1548e6c35d7932e3a71acbd1"},
                                         Form{"tg4_bf16", "BF16", WeightType::kW4A16, true, HeadType::kW8,
                                              "6e8ef87d4fa30ebb2fc12370bd458138ac905f9d4aa9f8a148e9171c0304ef38"},
                                         Form{"tg4_fp32", "BF16", WeightType::kW4A16, false, HeadType::kW4,
                                              "94686162f9faf1e589329f19a020c1f653304fc947f683848be7c9fe528c2e3f"},
                                         Form{"w4s", "BF16", WeightType::kW4A8, true, HeadType::kW8,
                                              "a30f6ebf666c23bb496f45ae2749a0bcb370357cd30328bc1efc20e18e131cc9"},
                                         Form{"w4s_zeros", "BF16", WeightType::kW4A8, false, HeadType::kW4,
                                              "d90756b3a2b20bf1e85c22616d2f981b22a496999e3afff205fc7aa7d5095509"},
                                         Form{"w8s", "BF16", WeightType::kW8A8, true, HeadType::kW8,
                                              "a39d18b324e1dee348f4977c987be7ac6a4f48e855fcc3cabb47e2e7b09bb29b"}));

// Forms that only differ in options.
TEST(DeterminismOfOptions, RealRowsOfAnInt8HeadAndFp32) {
  const auto model = make_model({"w4s", "BF16", WeightType::kW4A8, true, HeadType::kW8, ""});
  for (const bool fp32 : {false, true}) {
    DecoderOptions options;
    options.int8_head_rows = false;
    options.precision = fp32 ? Precision::kFp32 : Precision::kDefault;
    const std::vector<float> expected = logits_of(model, options);
    for (const char* tier : {"avx2", "avx512f"}) {
      options.max_isa = tier;
      options.chunk = 7;
      options.fused_norm = false;
      EXPECT_TRUE(same_bits(logits_of(model, options), expected)) << tier << (fp32 ? " fp32" : "");
    }
  }
}

}  // namespace
}  // namespace ref::spark
