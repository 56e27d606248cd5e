// SPDX-License-Identifier: Apache-2.0
// Samples have one set of bits: for any cut of a stream into calls, any number of frames at once, threads and tiers, watched or
// not. Their SHA-256 is kept here, so that it also holds over time.
#include <cmath>
#include <numeric>

#include "reference/qwen3_tts/codec/codec_for_test.h"
#include "tests/support/threads.h"

namespace ref::tts {
namespace {

// Rings of 64 slots wrap.
constexpr size_t kFrames = 90;

struct Form {
  const char* name;
  CodecType codec;
  bool fp32;
  std::function<void(nlohmann::json&)> change;
  const char* digest;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

// Channels 112, 56, 28, 14, 7: the last are odd, so that pairs of bf16 would straddle taps there.
void odd(nlohmann::json& config) {
  config["decoder_dim"] = 112;
  config["latent_dim"] = 36;
  config["codebook_dim"] = 20;
  config["num_hidden_layers"] = 3;
  config["num_key_value_heads"] = 1;
  config["sliding_window"] = 3;
  config["upsampling_ratios"] = {3, 2};
  config["upsample_rates"] = {5, 8, 8};
}
// A window that is wider than the ring is long at the start, and other rates.
void wide(nlohmann::json& config) {
  config["sliding_window"] = 72;
  config["decoder_dim"] = 96;
  config["upsample_rates"] = {2, 5, 4, 3, 4};
  config["upsampling_ratios"] = {4};
}

class CodecBits : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    weights_ = test::random_codec("qwen3-tts-tiny", GetParam().codec, GetParam().change);
    frames_ = test::random_frames(kFrames, 64);
    options_.fp32 = GetParam().fp32;
    expected_ = test::decode_all(weights_, frames_, options_);
  }
  std::vector<float> decode(const CodecDecoderOptions& options, const std::vector<size_t>& calls, Observer* observer = nullptr) {
    CodecDecoder decoder(weights_, options);
    return test::decode_in(&decoder, frames_, calls, observer);
  }

  test::Weights weights_;
  std::vector<Frame> frames_;
  CodecDecoderOptions options_;
  std::vector<float> expected_;
};

// What is passed over costs no samples and changes none: passes of every length around what the convolutions look back over, at the
// start of a stream and within.
TEST_P(CodecBits, BehindWhatIsPassedOver) {
  const auto rest_after = [&](CodecDecoder* decoder, size_t begin) {
    std::vector<float> rest((kFrames - begin) * kFrameSamples);
    decoder->decode(std::span(frames_).subspan(begin), rest);
    return rest;
  };
  for (const size_t first : {0, 3}) {
    for (const size_t passed : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 40, 75}) {
      CodecDecoder decoder(weights_, options_);
      std::vector<float> heard(first * kFrameSamples);
      decoder.decode(std::span(frames_).first(first), heard);
      decoder.pass(std::span(frames_).subspan(first, passed));
      EXPECT_EQ(decoder.position(), static_cast<int64_t>(first + passed));
      const std::vector<float> rest = rest_after(&decoder, first + passed);
      EXPECT_TRUE(
          test::same_samples(rest, std::vector<float>(expected_.end() - static_cast<int64_t>(rest.size()), expected_.end())))
          << passed << " frames after " << first;
    }
  }
}

TEST_P(CodecBits, OverTime) {
  double power = 0;
  for (const float sample : expected_) {
    ASSERT_TRUE(std::abs(sample) <= 1);
    power += double{sample} * sample;
  }
  EXPECT_GT(power / static_cast<double>(expected_.size()), 1e-6) << "silence would agree with itself";
  EXPECT_EQ(test::digest_of(expected_), GetParam().digest);
}

TEST_P(CodecBits, ForAnyCut) {
  std::vector<size_t> ramp(24);
  std::iota(ramp.begin(), ramp.end(), size_t{2});
  struct Cut {
    std::vector<size_t> calls;
    int64_t at_once;
  };
  for (const Cut& cut : {Cut{{1}, 1},
                         {{1}, 8},
                         {{2}, 8},
                         {ramp, 8},
                         {ramp, 64},
                         {{7}, 7},
                         {{25}, 3},
                         {{40}, 64},
                         {{1, 24, 2}, 1},
                         {{kFrames}, 2},
                         {{kFrames}, 64}}) {
    options_.max_frames = cut.at_once;
    EXPECT_TRUE(test::same_samples(decode(options_, cut.calls), expected_))
        << "calls of " << cut.calls[0] << "..., " << cut.at_once << " at once";
  }
}

TEST_P(CodecBits, ForAnyThreads) {
  for (const uint32_t threads : {1u, 2u, 3u, 4u}) {
    omni_pool* pool = nullptr;
    ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK);
    omni_parallel parallel = {sizeof parallel, 0, nullptr, nullptr};
    ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
    options_.parallel = &parallel;
    EXPECT_TRUE(test::same_samples(decode(options_, {4}), expected_)) << threads << " threads";
    omni_pool_destroy(pool);
  }
  const omni_parallel backwards = okl::test::backwards(5);
  options_.parallel = &backwards;
  EXPECT_TRUE(test::same_samples(decode(options_, {25}), expected_)) << "backwards";
}

TEST_P(CodecBits, OnEveryTier) {
  for (const char* tier : {"portable", "avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16", "amxint8", "amxbf16"}) {
    options_.max_isa = tier;
    EXPECT_TRUE(test::same_samples(decode(options_, {7}), expected_)) << tier;
  }
}

TEST_P(CodecBits, WatchedOrNot) {
  test::StageRecorder watched, whole;
  EXPECT_TRUE(test::same_samples(decode(options_, {3}, &watched), expected_));
  options_.max_frames = kFrames;
  EXPECT_TRUE(test::same_samples(decode(options_, {kFrames}, &whole), expected_));
  ASSERT_EQ(watched.stages.size(), whole.stages.size());
  for (const auto& [name, stage] : watched.stages) EXPECT_TRUE(test::same_samples(stage.values, whole.stages[name].values)) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CodecBits,
    testing::Values(
        Form{"fp32", CodecType::kFp32, false, {}, "0d81e686cc3c655c8786fbc61df4950d5e1fc6e31ed89b54c329922a7c8aa803"},
        Form{"bf16", CodecType::kBf16, false, {}, "25963f691d75e32c3546d48d61e7f319b3da25c7e160bf9276d099bed807e83f"},
        Form{"bf16_in_fp32", CodecType::kBf16, true, {}, "e50aeab253c4cd1efadba6d910f3377a526c9c25c162f268d6db887d2dc40dfd"},
        Form{"odd_fp32", CodecType::kFp32, false, odd, "e6ea6a6fed083cf2b1bfc4faaa0039398022742cb54718ea2ac86ef0b9009655"},
        Form{"odd_bf16", CodecType::kBf16, false, odd, "98069a770e9db0baab14ec3152693480365efb68b912a6241921663f977052df"},
        Form{"wide_fp32", CodecType::kFp32, false, wide, "11b259f46a0f22e48bd9eb27bb05858a1fdb89353be64a1f7c2d701ba27aef3e"},
        Form{"wide_bf16", CodecType::kBf16, false, wide, "1618cdc11bea2dcbe1d0614bf7843716c72548feda5b3926dce98d94c589e571"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ref::tts
