// SPDX-License-Identifier: Apache-2.0
// Encoders of random weights: the same bits for any threads and tier, over time, and what they refuse.
#include <limits>

#include "reference/pack/sha256.h"
#include "reference/qwen3_tts/voice/mel.h"
#include "reference/qwen3_tts/voice/nearest_entry.h"
#include "reference/qwen3_tts/voice/voice_for_test.h"
#include "tests/support/threads.h"

namespace ref::tts {
namespace {

template <typename T>
std::string digest_of(const std::vector<T>& values) {
  Sha256 sha;
  sha.add(std::as_bytes(std::span(values)));
  return sha.finish();
}

const ModelWeights& model() {
  static const test::Weights weights = test::synthetic("qwen3-tts-tiny");
  return *weights;
}

// Blocks of 7680 samples, 512 mel rows and 128 rows at 25 Hz: all of them more than once, the last ragged.
const std::vector<float>& recording() {
  static const std::vector<float> samples = test::speech(165001);
  return samples;
}

TEST(Encoders, OverTime) {
  const std::vector<Frame> frames = encode_speech(model(), recording(), {});
  EXPECT_EQ(frames.size(), 86U);
  std::map<int32_t, int> used;
  for (const Frame& frame : frames) {
    for (const int32_t code : frame) ++used[code];
  }
  EXPECT_GT(used.size(), 8U) << "one code over and over would agree with itself";
  const std::vector<float> row = embed_speaker(model(), recording(), {});
  EXPECT_EQ(digest_of(frames), "f066567af68225329c56adf32d0c58bae2e7fc1a2c50ae4d6df836156b9ec99e");
  EXPECT_EQ(digest_of(row), "046176fe57e9cf6287bfc14a3e2cf2ac26b1627ec51e47840fb3e2c14feb46d9");
}

TEST(Encoders, ForAnyThreadsAndTier) {
  const std::vector<float> samples(recording().begin(), recording().begin() + 60001);
  const std::vector<Frame> frames = encode_speech(model(), samples, {});
  const std::vector<float> row = embed_speaker(model(), samples, {});
  const uint32_t three = 3;
  const omni_parallel backwards = okl::test::backwards(2), fresh = okl::test::fresh_threads(&three);
  for (const omni_parallel* parallel : {&backwards, &fresh}) {
    EXPECT_EQ(encode_speech(model(), samples, {"", parallel}), frames);
    EXPECT_EQ(embed_speaker(model(), samples, {"", parallel}), row);
  }
  for (const char* isa : {"avx2", "avx512f"}) {
    EXPECT_EQ(encode_speech(model(), samples, {isa, nullptr}), frames) << isa;
    EXPECT_EQ(embed_speaker(model(), samples, {isa, nullptr}), row) << isa;
  }
}

// Causal: what comes later does not change the frames that are complete, but for the downsampling, which looks 40 ms ahead.
TEST(Encoders, FramesDependOnWhatCameBefore) {
  const std::vector<Frame> all = encode_speech(model(), recording(), {});
  for (const size_t samples : {size_t{1920} * 40, size_t{7680} * 3}) {
    const std::vector<Frame> part = encode_speech(model(), std::span(recording()).first(samples), {});
    ASSERT_EQ(part.size(), samples / 1920);
    for (size_t i = 0; i + 1 < part.size(); ++i) ASSERT_EQ(part[i], all[i]) << i;
  }
}

TEST(Encoders, Lengths) {
  for (const size_t samples : {1, 2, 959, 960, 961, 1919, 1920, 1921, 7680, 7681}) {
    EXPECT_EQ(encode_speech(model(), std::span(recording()).first(samples), {}).size(), (samples + 1919) / 1920) << samples;
  }
  const std::string line = test::error_of([] { encode_speech(model(), {}, {}); });
  EXPECT_NE(line.find("a reference of 0 samples is too short: 1 are needed"), std::string::npos) << line;
}

// 1280 samples are five mel frames, as many as the widest convolution reaches.
TEST(Encoders, ShortestOfASpeaker) {
  const auto embed = [](size_t samples) { return embed_speaker(model(), std::span(recording()).first(samples), {}); };
  for (const float value : embed(1280)) EXPECT_TRUE(std::isfinite(value));
  const std::string line = test::error_of([&] { embed(1279); });
  EXPECT_NE(line.find("a reference of 1279 samples is too short: 1280 are needed"), std::string::npos) << line;
}

// AC-075, from the samples on.
TEST(Encoders, ReferencesThatAreNoSpeech) {
  std::vector<std::vector<float>> references = {std::vector<float>(72000, 0.0F), std::vector<float>(72000, 0.5F)};
  std::vector<float> square(72000);
  for (size_t i = 0; i < square.size(); ++i) square[i] = i / 50 % 2 == 0 ? 1.0F : -1.0F;
  references.push_back(square);
  for (const std::vector<float>& samples : references) {
    test::Stages stages;
    for (const float value : embed_speaker(model(), samples, {}, &stages)) ASSERT_TRUE(std::isfinite(value));
    for (const float value : stages.stages["mel"].values) ASSERT_TRUE(std::isfinite(value));
    EXPECT_EQ(encode_speech(model(), samples, {}).size(), 38U);
  }
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> samples = test::speech(48000);
    samples[4711] = bad;
    for (const std::string& line : {test::error_of([&] { embed_speaker(model(), samples, {}); }),
                                    test::error_of([&] { encode_speech(model(), samples, {}); })}) {
      EXPECT_NE(line.find("sample 4711 of the reference is not finite"), std::string::npos) << line;
    }
  }
}

TEST(Encoders, ModelsWithout) {
  ModelWeights without;
  without.name = "a model";
  without.config = synthetic_config("qwen3-tts-tiny");
  for (const std::string& line : {test::error_of([&] { embed_speaker(without, recording(), {}); }),
                                  test::error_of([&] { encode_speech(without, recording(), {}); })}) {
    EXPECT_NE(line.find("packed without encoders"), std::string::npos) << line;
  }
  without.config["tts_model_type"] = "voice_design";
  const std::string line = test::error_of([&] { embed_speaker(without, recording(), {}); });
  EXPECT_NE(line.find("only Base models clone a voice"), std::string::npos) << line;
}

// A tone stands where its band is, and everything else far below.
TEST(Mel, ATone) {
  const MelFrontEnd front(128);
  std::vector<float> samples(24000);
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = static_cast<float>(std::sin(2 * M_PI * 1000 / 24000 * static_cast<double>(i)));
  const std::vector<float> mel = front.run(samples);
  ASSERT_EQ(static_cast<int64_t>(mel.size()), MelFrontEnd::frames(24000) * 128);
  EXPECT_EQ(MelFrontEnd::frames(24000), 93);
  const float* row = mel.data() + 40 * 128;
  const auto loudest = std::max_element(row, row + 128) - row;
  // 1 kHz is 15 mel, of 51.1 up to 12 kHz in 129 steps: the peak of band 36.8.
  EXPECT_NEAR(static_cast<double>(loudest), 36.8, 1);
  EXPECT_LT(row[100], row[loudest] - 8);
}

TEST(NearestEntry, TheLowestOfATieAndNotBeyondTheEnd) {
  // 600 entries, more than one block; entries 7, 550 and 599 are the same.
  std::vector<float> book(600 * 2, 9.0F);
  for (const size_t entry : {7, 550, 599}) book[2 * entry] = book[2 * entry + 1] = 1.0F;
  book[2 * 300] = 0.25F, book[2 * 300 + 1] = 0.0F;
  const Plain plain = {OMNI_DTYPE_F32, {1, 600, 2}, std::as_bytes(std::span(book))};
  std::vector<float> x = {1.0F, 1.25F, 0.5F, 0.0F, 100.0F, 100.0F, 1, 1, 1, 1};
  std::vector<int32_t> codes(15, -1);
  quantise_rows(plain, x.data(), 5, codes.data(), 3, nullptr);
  EXPECT_EQ(codes, (std::vector<int32_t>{7, -1, -1, 300, -1, -1, 0, -1, -1, 7, -1, -1, 7, -1, -1}));
  EXPECT_EQ(x, (std::vector<float>{0, 0.25F, 0.25F, 0, 91, 91, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace ref::tts
