// SPDX-License-Identifier: Apache-2.0
// Encoders against what the reference implementation recorded of them.
#include "reference/qwen3_tts/voice/voice_for_test.h"

namespace ref::tts {
namespace {

#define OMNI_NEEDS(path) \
  if ((path).empty()) GTEST_SKIP() << "OMNI_GOLDENS does not name the golden files"

struct Reference {
  explicit Reference(const std::filesystem::path& path)
      : file(omni_files::SafetensorsFile::open(path.string())), samples(tensor("wav").as<float>()) {}
  const omni_files::Tensor& tensor(const std::string& name) const {
    const omni_files::Tensor* found = file.find(name);
    if (found == nullptr) throw Error("no golden tensor " + name);
    return *found;
  }
  omni_files::SafetensorsFile file;
  std::vector<float> samples;
};

void compare(const test::Stages& stages, const Reference& reference, const std::string& name, bool turned, double tolerance) {
  const auto found = stages.stages.find(name);
  ASSERT_NE(found, stages.stages.end()) << name;
  const double most = test::difference(found->second, reference.tensor(name), turned);
  EXPECT_LE(most, tolerance) << name;
  ::testing::Test::RecordProperty(name, std::to_string(most));
}

TEST(EncoderGoldens, SpeakerEncoder) {
  const std::filesystem::path model = test::golden("base-tiny"), path = test::golden("golden/speaker_encoder.safetensors");
  OMNI_NEEDS(path);
  const Reference reference(path);
  test::Stages stages;
  const std::vector<float> row = embed_speaker(*test::load(model), reference.samples, {}, &stages);
  EXPECT_EQ(row, stages.stages["embedding"].values);
  compare(stages, reference, "mel", true, 1e-3);
  for (const char* name : {"block0", "block1", "block2", "block3", "mfa"}) compare(stages, reference, name, true, 1e-4);
  for (const char* name : {"asp", "embedding"}) compare(stages, reference, name, false, 1e-4);
}

TEST(EncoderGoldens, SpeechEncoder) {
  const std::filesystem::path model = test::golden("base-tiny"), path = test::golden("golden/speech_encoder.safetensors");
  OMNI_NEEDS(path);
  const Reference reference(path);
  test::Stages stages;
  const std::vector<Frame> frames = encode_speech(*test::load(model), reference.samples, {}, &stages);
  for (const char* name : {"seanet_layer0", "seanet_layer1", "seanet_layer3", "seanet_layer6", "seanet_layer9", "seanet_layer12",
                           "seanet_layer14", "downsample", "semantic_in", "acoustic_in"}) {
    compare(stages, reference, name, true, 1e-4);
  }
  compare(stages, reference, "encoder_transformer", false, 1e-4);
  const std::vector<int64_t> codes = reference.tensor("codes").as<int64_t>();
  ASSERT_EQ(frames.size() * kCodebooks, codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(frames[i / kCodebooks][i % kCodebooks], codes[i]) << "frame " << i / kCodebooks << ", level " << i % kCodebooks;
  }
}

// bf16 weights, fp32 arithmetic: the row stands in a golden prompt, beside the row of the padding.
TEST(EncoderGoldens, SpeakerEncoderInBf16) {
  const std::filesystem::path model = test::golden("base-tiny-bf16"), path = test::golden("golden/speaker_encoder.safetensors"),
                              request = test::golden("golden/bf16w_fp32compute_xvec_stream.safetensors");
  OMNI_NEEDS(path);
  const std::vector<float> row = embed_speaker(*test::load(model), Reference(path).samples, {});
  const auto file = omni_files::SafetensorsFile::open(request.string());
  const std::vector<float> prompt = file.find("prompt_embeds")->as<float>(), pad = file.find("tts_pad_embed")->as<float>();
  ASSERT_EQ(row.size(), pad.size());
  constexpr size_t kRow = 3 + 4;  // behind the role and the tags
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], prompt[kRow * pad.size() + i] - pad[i], 1e-4) << i;
}

}  // namespace
}  // namespace ref::tts
