// SPDX-License-Identifier: Apache-2.0
// Statistics of a text against those of a decoder that shows everything, and what they are worth on a trained model.
#include "reference/spark/text_calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "reference/generate/evaluate.h"
#include "reference/pack/models.h"
#include "reference/spark/test_models.h"
#include "reference/text/tokenizer.h"

namespace ref::spark::test {
namespace {

namespace fs = std::filesystem;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

constexpr int64_t kWindow = 24;

class Directory {
 public:
  explicit Directory(const TinySpark& tiny) : config(tiny.config()) {
    TinySpark::write(directory_ / "m", config, tiny.weights());
    checkpoint = std::make_unique<Checkpoint>(Checkpoint::open(directory_ / "m"));
  }
  std::unique_ptr<Calibration> calibrate(const std::vector<int32_t>& ids, bool factors = false, int64_t most = 100) const {
    CalibrationOptions options;
    options.window = kWindow;
    options.most_windows = most;
    options.factors = factors;
    return calibrate_model(*checkpoint, config, ids, options);
  }

  nlohmann::json config;
  std::unique_ptr<Checkpoint> checkpoint;

 private:
  TemporaryDirectory directory_;
};

// Rows of a decoder's tensor over all windows.
std::map<std::string, std::vector<float>> seen_by_a_decoder(const Directory& model, const std::vector<int32_t>& ids) {
  PackOptions pack;
  pack.weights = WeightType::kBf16;
  pack.head = HeadType::kBf16;
  Decoder decoder(pack_in_memory(*model.checkpoint, pack, nullptr, {}, nullptr), with(kWindow, kWindow, Precision::kDefault));
  Recorder recorder;
  std::vector<float> logits(static_cast<size_t>(decoder.config().vocabulary));
  for (const std::vector<int32_t>& window : cut_windows(ids, kWindow, 100)) {
    decoder.reset();
    decoder.forward(window, ref::spark::Rows::kLast, logits, &recorder);
  }
  return recorder.tensors;
}

void expect_moments(const InputMoments& found, const std::vector<float>& x, int64_t k, double tolerance = 1e-4) {
  const auto rows = static_cast<int64_t>(x.size()) / k;
  ASSERT_EQ(found.k(), k);
  ASSERT_EQ(found.rows(), rows);
  std::vector<float> block(static_cast<size_t>(k * k));
  found.copy_block(0, k, k, block.data());
  std::vector<double> expected(block.size());
  double trace = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r)
        sum += static_cast<double>(x[static_cast<size_t>(r * k + i)]) * static_cast<double>(x[static_cast<size_t>(r * k + j)]);
      expected[static_cast<size_t>(i * k + j)] = sum / static_cast<double>(rows);
    }
    trace += expected[static_cast<size_t>(i * (k + 1))];
  }
  const double mean = trace / static_cast<double>(k);
  for (int64_t i = 0; i < k; ++i) expected[static_cast<size_t>(i * (k + 1))] += 0.01 * mean;
  for (size_t i = 0; i < block.size(); ++i) ASSERT_NEAR(block[i], expected[i], tolerance * mean) << i;
}

TEST(TextCalibration, SeesWhatADecoderSees) {
  TinySpark plain, other;
  other.layers = 5;
  other.dtype = "F32";
  other.tied = false;
  other.bias = true;
  other.gated = false;
  for (const TinySpark& tiny : {plain, other}) {
    const Directory model(tiny);
    const std::vector<int32_t> ids = some_ids(5 * kWindow + 7, static_cast<int32_t>(tiny.vocabulary));
    const auto seen = seen_by_a_decoder(model, ids);
    const std::unique_ptr<Calibration> calibration = model.calibrate(ids);
    for (int64_t layer = 0; layer < tiny.layers; ++layer) {
      const std::string module = "model.layers." + std::to_string(layer) + ".", tensor = "layer." + std::to_string(layer) + ".";
      SCOPED_TRACE(module);
      expect_moments(calibration->inputs(module + "self_attn.q_k_v_proj"), seen.at(tensor + "attn_norm"), tiny.hidden);
      expect_moments(calibration->inputs(module + "self_attn.out_proj"), seen.at(tensor + "attn_gated"),
                     tiny.heads * tiny.head_dim);
      expect_moments(calibration->inputs(module + "mlp.gate_proj"), seen.at(tensor + "ffn_norm"), tiny.hidden);
      expect_moments(calibration->inputs(module + "mlp.up_proj"), seen.at(tensor + "ffn_norm"), tiny.hidden);
      expect_moments(calibration->inputs(module + "mlp.down_proj"), seen.at(tensor + "ffn_act"), tiny.intermediate);
      EXPECT_TRUE(calibration->inputs(module + "mlp.down_proj").factor().empty());
    }
    // A decoder's are rounded to bf16 where its head asks for that.
    expect_moments(calibration->inputs(tiny.tied ? "model.embedding" : "lm_head"), seen.at("final_norm"), tiny.hidden, 5e-3);
  }
}

// Layers that nobody asks about are run all the same.
TEST(TextCalibration, MaySkipLayersButNotGoBack) {
  TinySpark tiny;
  tiny.layers = 4;
  const Directory model(tiny);
  const std::vector<int32_t> ids = some_ids(60, 80);
  const std::unique_ptr<Calibration> all = model.calibrate(ids, true), some = model.calibrate(ids, true);
  for (int64_t layer = 0; layer < 3; ++layer) all->inputs("model.layers." + std::to_string(layer) + ".mlp.down_proj");
  const std::string third = "model.layers.2.mlp.down_proj";
  const std::span<const float> one = all->inputs(third).factor(), two = some->inputs(third).factor();
  ASSERT_EQ(one.size(), static_cast<size_t>(tiny.intermediate * tiny.intermediate));
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin(), two.end()));
  EXPECT_EQ(error_of([&] { some->inputs("model.layers.1.mlp.up_proj"); }),
            "statistics of \"model.layers.1.mlp.up_proj\" were asked for after those of layer 2");
  for (const char* unknown : {"model.layers.4.mlp.up_proj", "model.layers.-1.mlp.up_proj", "model.layers.2mlp.up_proj",
                              "model.layers.2.mlp.x", "x", "model.layers."}) {
    EXPECT_EQ(error_of([&] { some->inputs(unknown); }), "there are no statistics of \"" + std::string(unknown) + "\"");
  }
  EXPECT_EQ(some->inputs("lm_head").factor().size(), static_cast<size_t>(tiny.hidden * tiny.hidden));
  EXPECT_EQ(error_of([&] { some->inputs(third); }), "statistics of \"" + third + "\" were asked for after those of layer 4");
}

TEST(TextCalibration, RefusesIdsOfAnotherModel) {
  const Directory model{TinySpark()};
  EXPECT_NE(error_of([&] { model.calibrate({1, 2, 80}); }).find("80"), std::string::npos);
}

TEST(Windows, AreSpreadEvenly) {
  std::vector<int32_t> ids(103);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto firsts = [&](int64_t most) {
    std::vector<int32_t> all;
    for (const auto& window : cut_windows(ids, 10, most)) all.push_back(window.front());
    return all;
  };
  EXPECT_EQ(firsts(100), (std::vector<int32_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_EQ(firsts(4), (std::vector<int32_t>{0, 20, 50, 80}));
  EXPECT_EQ(firsts(1), std::vector<int32_t>{0});
  EXPECT_EQ(cut_windows(ids, 10, 100).back().size(), 3U);
  EXPECT_TRUE(cut_windows({}, 10, 4).empty());
}

TEST(Text, ErrorsNameTheFile) {
  const TemporaryDirectory directory;
  const fs::path model = fs::path(OMNI_TEST_DATA) / "tokenizer" / "spark_small";
  directory.write("empty.txt", "");
  directory.write("some.txt", "In the beginning");
  const std::string empty = (directory / "empty.txt").string(), some = (directory / "some.txt").string();
  EXPECT_EQ(error_of([&] { read_text_ids(empty, model); }), empty + ": has no text to calibrate with");
  EXPECT_NE(error_of([&] { read_text_ids(directory / "none.txt", model); }).find("none.txt: cannot be opened"), std::string::npos);
  EXPECT_NE(error_of([&] { read_text_ids(some, directory.path()); }).find("tokenizer.json"), std::string::npos);
  EXPECT_EQ(read_text_ids(some, model), Tokenizer::load(model / "tokenizer.json").encode("In the beginning"));
  fs::resize_file(some, kMostTextBytes + 1);
  EXPECT_NE(error_of([&] { read_text_ids(some, model); }).find("more than the 16777216"), std::string::npos);
}

// ------------------------------------------------------------------------------------------------ a trained model
class Scored : public TokenModel {
 public:
  explicit Scored(std::shared_ptr<const ModelWeights> weights) : decoder_(std::move(weights), with(512, 512)) {}
  int64_t vocabulary() const override { return decoder_.config().vocabulary; }
  int64_t context() const override { return 512; }
  int64_t position() const override { return decoder_.position(); }
  void reset() override { decoder_.reset(); }
  void append(std::span<const int32_t> ids) override { decoder_.forward(ids, ref::spark::Rows::kNone, {}); }
  void append_last(std::span<const int32_t> ids, std::span<float> logits) override {
    decoder_.forward(ids, ref::spark::Rows::kLast, logits);
  }
  void append_all(std::span<const int32_t> ids, std::span<float> logits) override {
    decoder_.forward(ids, ref::spark::Rows::kAll, logits);
  }

 private:
  Decoder decoder_;
};

struct Scheme {
  const char* name;
  WeightType weights;
  int64_t group;
  bool symmetric;
  double search;  // at most, of the divergence of nearest rounding
};

class Worth : public testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override {
    const char* goldens = std::getenv("OMNI_GOLDENS");
    if (goldens == nullptr) GTEST_SKIP() << "OMNI_GOLDENS names no directory";
    directory_ = fs::path(goldens) / "spark" / "sparklet";
    checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(directory_));
    ids_ = read_text_ids(directory_ / "eval.txt", directory_);
    ids_.resize(8 * 512);
    PackOptions options;
    options.weights = WeightType::kKeep;
    options.head = HeadType::kKeep;
    exact_ = std::make_unique<Scored>(pack_in_memory(*checkpoint_, options, nullptr, {}, nullptr));
  }
  double divergence(Quantiser quantiser, bool calibrated) {
    PackOptions options;
    options.weights = GetParam().weights;
    options.group = GetParam().group;
    options.symmetric = GetParam().symmetric;
    options.head = HeadType::kBf16;
    options.quantiser = quantiser;
    std::unique_ptr<Calibration> calibration;
    if (calibrated) {
      CalibrationOptions reading;
      reading.most_windows = 32;
      reading.factors = quantiser == Quantiser::kGptq;
      calibration = calibrate_model(*checkpoint_, read_json_object(directory_ / "config.json"),
                                    read_text_ids(directory_ / "calib.txt", directory_), reading);
      options.calibration = calibration.get();
    }
    Scored model(pack_in_memory(*checkpoint_, options, nullptr, {}, nullptr));
    const Comparison comparison = compare(exact_.get(), &model, ids_, 512, {});
    return comparison.kl / static_cast<double>(comparison.positions());
  }

  fs::path directory_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::vector<int32_t> ids_;
  std::unique_ptr<Scored> exact_;
};

TEST_P(Worth, OfEachQuantiser) {
  const double nearest = divergence(Quantiser::kNearest, false), search = divergence(Quantiser::kSearch, false),
               weighted = divergence(Quantiser::kSearch, true), gptq = divergence(Quantiser::kGptq, true);
  std::printf("%s: nearest %.3e, search %.3f, calibrated %.3f, GPTQ %.3f of it\n", GetParam().name, nearest, search / nearest,
              weighted / nearest, gptq / nearest);
  EXPECT_LT(search, GetParam().search * nearest);
  EXPECT_LT(weighted, 0.85 * nearest);
  EXPECT_LT(gptq, 0.6 * nearest);
}
INSTANTIATE_TEST_SUITE_P(Schemes, Worth,
                         testing::Values(Scheme{"w4a16_g128", WeightType::kW4A16, 128, false, 0.9},
                                         Scheme{"w4a8_g128", WeightType::kW4A8, 128, false, 0.9},
                                         Scheme{"w4a8_g128_sym", WeightType::kW4A8, 128, true, 0.9}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ref::spark::test
