// SPDX-License-Identifier: Apache-2.0
// Packed directories of speech models: written, read back, mapped in part, and spoiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/pack/source_for_test.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/unpack_matrix.h"

namespace ref::tts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const PackOptions kMixed{.weights = WeightType::kW4A8,
                         .group = 32,
                         .quantiser = Quantiser::kNearest,
                         .speech = {.predictor = WeightType::kW8A8, .predictor_group = 0}};

void expect_same(const ModelWeights& a, const ModelWeights& b) {
  EXPECT_EQ(a.config, b.config);
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  ASSERT_EQ(a.plains.size(), b.plains.size());
  for (const auto& [name, matrix] : a.matrices) {
    const Matrix& other = b.matrix(name, matrix.layout.n, matrix.layout.k);
    EXPECT_TRUE(std::ranges::equal(matrix.codes, other.codes)) << name;
    EXPECT_TRUE(std::ranges::equal(matrix.scales, other.scales)) << name;
  }
  for (const auto& [name, plain] : a.plains) EXPECT_TRUE(std::ranges::equal(plain.bytes, b.plain(name, plain.shape).bytes)) << name;
}

class PackedSpeech : public testing::Test {
 protected:
  fs::path packed() const { return directory_ / "packed"; }
  void pack(const PackOptions& options, const char* model = "base-tiny-bf16") {
    pack_to_directory(Checkpoint::open(test::source_path(model)), packed(), options, true, {}, nullptr);
  }
  std::shared_ptr<const ModelWeights> load(WeightsMemory memory = WeightsMemory::kMapped) const {
    return load_packed(packed(), memory, nullptr);
  }

  omni_files::TemporaryDirectory directory_;
};

TEST_F(PackedSpeech, HoldsWhatMemoryWouldHold) {
  for (const WeightType type : {WeightType::kKeep, WeightType::kBf16, WeightType::kW8A8, WeightType::kW4A8, WeightType::kW4A16}) {
    for (const bool encoders : {true, false}) {
      PackOptions options{.weights = type, .group = 32, .quantiser = Quantiser::kNearest};
      options.speech = {.codec = encoders ? CodecType::kFp32 : CodecType::kBf16, .encoders = encoders};
      pack(options);
      const auto memory = pack_in_memory(Checkpoint::open(test::source_path("base-tiny-bf16")), options, nullptr, {}, nullptr);
      expect_same(*memory, *load());
      expect_same(*memory, *load(WeightsMemory::kHuge));
      verify_packed(packed(), {}, nullptr);
    }
  }
}

TEST_F(PackedSpeech, IsOneDirectoryWithOneConfig) {
  pack(kMixed);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(packed())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "generation_config.json", "merges.txt", "tokenizer_config.json",
                                             "vocab.json", "weights.safetensors"}));
  const auto weights = load();
  EXPECT_EQ(read_config(weights->config, "packed").decoder.codebook_size, 256);
  const auto file = omni_files::SafetensorsFile::open((packed() / "weights.safetensors").string());
  EXPECT_EQ(file.metadata().at("model_type"), "qwen3_tts");
  EXPECT_EQ(file.metadata().at("weights"), "w4a8");
  EXPECT_EQ(file.metadata().at("predictor"), "w8a8");
  EXPECT_EQ(file.metadata().at("codec"), "fp32");
  EXPECT_EQ(file.metadata().at("encoders"), "true");
}

// Of what is not read for every frame nothing is copied: it lies behind the rest of the file.
TEST_F(PackedSpeech, EncodersAndTextStayMapped) {
  pack(kMixed);
  const auto huge = load(WeightsMemory::kHuge);
  ASSERT_EQ(huge->storage.size(), 2U);
  const auto block = std::static_pointer_cast<const omni::PackedMemory>(huge->storage[1]);
  const auto inside = [&](Bytes bytes) {
    return bytes.data() >= block->bytes().data() && bytes.data() + bytes.size() <= block->bytes().data() + block->size();
  };
  uint64_t copied = 0;
  const auto expect = [&](const std::string& name, Bytes bytes) {
    const bool seldom = name.starts_with("encoder.") || name.starts_with("speaker_encoder.");
    const bool mapped = seldom || name == "talker.model.text_embedding.weight";
    EXPECT_EQ(inside(bytes), !mapped) << name;
    if (!mapped) copied += bytes.size();
  };
  for (const auto& [name, matrix] : huge->matrices) {
    expect(name, matrix.codes);
    if (!matrix.scales.empty()) expect(name, matrix.scales);
  }
  for (const auto& [name, plain] : huge->plains) expect(name, plain.bytes);
  EXPECT_LT(block->size(), copied + (uint64_t{4} << 20));  // rounded up to large pages
}

// A packed file whose header may be changed.
class SpoiledSpeech : public PackedSpeech {
 protected:
  SpoiledSpeech() {
    pack(kMixed);
    std::ifstream stream(packed() / "weights.safetensors", std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(stream), {});
    std::memcpy(&length_, file_.data(), 8);
    header_ = json::parse(file_.substr(8, length_));
  }
  void write(const json& header) const {
    std::string text = header.dump();
    text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
    const uint64_t length = text.size();
    std::ofstream stream(packed() / "weights.safetensors", std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), 8);
    stream << text << file_.substr(8 + length_);
  }
  std::string error(const json& header) const {
    write(header);
    return test::error_of([&] { load(); });
  }
  void expect_error(const json& header, const std::string& text) const {
    const std::string line = error(header);
    EXPECT_NE(line.find(text), line.npos) << line;
  }

  std::string file_;
  uint64_t length_ = 0;
  json header_;
};

TEST_F(SpoiledSpeech, AConvolutionOfAnotherShape) {
  json header = header_;
  json& layout = header["__metadata__"]["layout.decoder.decoder.1.block.1.conv"];
  ASSERT_EQ(layout, "w32.1:n=256,k=128,g=128,s=none");
  layout = "w32.1:n=128,k=256,g=256,s=none";  // as many bytes
  expect_error(header, "matrix \"decoder.decoder.1.block.1.conv\" is [128, 256], the config says [256, 128]");
  header = header_;
  header["__metadata__"].erase("layout.encoder.downsample.conv");
  expect_error(header, "tensor \"encoder.downsample.conv.codes\" has the type U8 and belongs to no matrix");
}

TEST_F(SpoiledSpeech, ACodebookThatIsAbsentOrOther) {
  const std::string name = "decoder.quantizer.rvq_rest.codebook";
  json header = header_;
  header[name]["shape"] = {16, 240, 16};
  expect_error(header, "tensor \"" + name + "\" is [16, 240, 16], the config says [15, 256, 16]");
  header = header_;
  header["decoder.other"] = header[name];
  header.erase(name);
  expect_error(header, "has no tensor \"" + name + "\"");
}

// All of an encoder, or nothing of it.
TEST_F(SpoiledSpeech, HalfAnEncoder) {
  json header = header_;
  header["other"] = header["encoder.quantizer.acoustic_residual_vector_quantizer.codebook"];
  header.erase("encoder.quantizer.acoustic_residual_vector_quantizer.codebook");
  expect_error(header, "has no tensor \"encoder.quantizer.acoustic_residual_vector_quantizer.codebook\"");
  header = header_;
  json& metadata = header["__metadata__"];
  metadata["layout.encoder.other"] = metadata["layout.encoder.downsample.conv"];
  metadata.erase("layout.encoder.downsample.conv");
  header["encoder.other.codes"] = header["encoder.downsample.conv.codes"];
  header.erase("encoder.downsample.conv.codes");
  expect_error(header, "has no matrix \"encoder.downsample.conv\"");
}

TEST_F(SpoiledSpeech, AConfigOfAnotherModel) {
  json config = load()->config;
  config["talker_config"]["hidden_size"] = 72;
  config["speaker_encoder_config"]["enc_dim"] = 72;
  std::ofstream(packed() / "config.json") << config;
  EXPECT_NE(error(header_).find("the config says"), std::string::npos) << error(header_);
  config.erase(kSpeechTokenizer);
  std::ofstream(packed() / "config.json") << config;
  EXPECT_NE(error(header_).find("speech_tokenizer"), std::string::npos) << error(header_);
}

// What stays mapped is only a matter of memory: any marks give the same model.
TEST_F(SpoiledSpeech, MarksOfSeldomPartsChangeNothing) {
  const auto before = pack_in_memory(Checkpoint::open(test::source_path("base-tiny-bf16")), kMixed, nullptr, {}, nullptr);
  json header = header_;
  for (const auto& [name, tensor] : header_.items()) {
    if (name.starts_with("talker.model.layers.1.")) header["__metadata__"]["seldom." + name] = "whole";
    header["__metadata__"].erase("seldom." + name);
  }
  header["__metadata__"]["seldom.no.such"] = "whole";
  write(header);
  expect_same(*before, *load(WeightsMemory::kHuge));
  header = header_;
  for (const auto& [name, tensor] : header_.items()) header["__metadata__"]["seldom." + name] = "whole";
  write(header);
  expect_same(*before, *load(WeightsMemory::kHuge));
}

TEST_F(SpoiledSpeech, EveryTruncationIsALine) {
  for (const size_t size :
       {file_.size() - 1, file_.size() / 2, static_cast<size_t>(length_) + 8, size_t{100}, size_t{7}, size_t{0}}) {
    std::ofstream(packed() / "weights.safetensors", std::ios::binary) << file_.substr(0, size);
    const std::string line = test::error_of([&] { load(); });
    EXPECT_NE(line.find("weights.safetensors: "), line.npos) << size << ": " << line;
    EXPECT_EQ(line.find('\n'), line.npos);
  }
}

}  // namespace
}  // namespace ref::tts
