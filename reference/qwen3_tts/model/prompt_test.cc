// SPDX-License-Identifier: Apache-2.0
// The prompt forms row by row, against the two sides that they are sums of, and requests that no prompt can be made of.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reference/qwen3_tts/model/prompt_builder.h"
#include "reference/qwen3_tts/model/test_models.h"

namespace ref::tts {
namespace {

using test::error_of;
using test::golden_path;
using Row = std::vector<float>;

constexpr int32_t kStart = 431, kEnd = 432, kAssistant = 266, kNewline = 198;

class Forms : public testing::Test {
 protected:
  void SetUp() override {
    if (golden_path(test::kSmallModel).empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    weights_ = test::small_model();
    open();
  }
  // Another kind of model with the same weights.
  void make(const char* type, const char* size = "1b7") {
    auto changed = std::make_shared<ModelWeights>(*weights_);
    changed->config["tts_model_type"] = type;
    changed->config["tts_model_size"] = size;
    nlohmann::json& talker = changed->config["talker_config"];
    talker["spk_id"] = {{"ryan", 1269}, {"Dylan", 1086}};
    talker["codec_language_id"]["beijing_dialect"] = 282;
    talker["spk_is_dialect"] = {{"ryan", false}, {"Dylan", "beijing_dialect"}};
    weights_ = changed;
    open();
  }
  void open() {
    TalkerOptions options;
    options.context = 256;
    options.precision = Precision::kFp32;
    talker_ = std::make_unique<Talker>(weights_, options);
    hidden_ = talker_->config().talker.stack.hidden;
    tables_.emplace(talker_->config(), *weights_);
  }

  static PromptText ids(const std::vector<int32_t>& text) {
    PromptText made;
    made.text = {kStart, kAssistant, kNewline};
    made.text.insert(made.text.end(), text.begin(), text.end());
    made.text.insert(made.text.end(), {kEnd, kNewline, kStart, kAssistant, kNewline});
    return made;
  }
  PromptRequest request(const std::string& language = "auto", const Voice* voice = nullptr, bool streaming = true) const {
    return {ids({10, 20, 30}), language, voice, streaming};
  }

  // Rows of a text id alone, by a prompt that holds it: in D1 all but the first of the text trail.
  Row text(int32_t id) const {
    const Prompt prompt = talker_->prompt({ids({10, id}), "auto", nullptr, true});
    return {prompt.trailing.begin(), prompt.trailing.begin() + hidden_};
  }
  Row pad() const { return {talker_->pad_row().begin(), talker_->pad_row().end()}; }
  Row codec(int32_t id) const {
    Row row(static_cast<size_t>(hidden_));
    tables_->codec(id, row.data());
    return row;
  }
  Row frame(const Frame& frame) const {
    Row row(static_cast<size_t>(hidden_));
    tables_->frame(frame, row.data());
    return row;
  }
  static Row sum(Row a, const Row& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  void expect_rows(const std::vector<float>& rows, const std::vector<Row>& expected) const {
    ASSERT_EQ(rows.size(), expected.size() * static_cast<size_t>(hidden_));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(
          Row(rows.begin() + static_cast<std::ptrdiff_t>(i) * hidden_, rows.begin() + static_cast<std::ptrdiff_t>(i + 1) * hidden_),
          expected[i])
          << "row " << i;
    }
  }
  // Blocks B and C: the role, then codec ids over PAD, the last over BOS.
  std::vector<Row> opening(const std::vector<Row>& codec_side) const {
    std::vector<Row> rows = {text(kStart), text(kAssistant), text(kNewline)};
    for (const Row& row : codec_side) rows.push_back(sum(pad(), row));
    const Config& config = talker_->config();
    rows.push_back(sum(text(config.tts_bos), codec(config.talker.pad)));
    return rows;
  }
  std::vector<Row> no_language() const { return {codec(363), codec(364), codec(365)}; }
  std::vector<Row> language(int32_t id) const { return {codec(362), codec(364), codec(id), codec(365)}; }

  std::shared_ptr<const ModelWeights> weights_;
  std::unique_ptr<Talker> talker_;
  std::optional<FrameTables> tables_;
  int64_t hidden_ = 0;
};

TEST_F(Forms, StreamingText) {
  const Prompt prompt = talker_->prompt(request());
  std::vector<Row> rows = opening(no_language());
  rows.push_back(sum(text(10), codec(357)));
  expect_rows(prompt.rows, rows);
  EXPECT_EQ(prompt.length, 8);
  expect_rows(prompt.trailing, {text(20), text(30), text(talker_->config().tts_eos)});
  EXPECT_EQ(prompt.trailing_length, 3);
}

TEST_F(Forms, WholeText) {
  const Prompt prompt = talker_->prompt(request("English", nullptr, false));
  std::vector<Row> rows = opening(language(258));
  for (const int32_t id : {10, 20, 30, talker_->config().tts_eos}) rows.push_back(sum(text(id), codec(356)));
  rows.push_back(sum(pad(), codec(357)));
  expect_rows(prompt.rows, rows);
  expect_rows(prompt.trailing, {pad()});
}

TEST_F(Forms, Clones) {
  Voice voice;
  voice.speaker.assign(static_cast<size_t>(hidden_), 0.5F);
  for (int32_t i = 0; i < 6; ++i) {
    voice.frames.emplace_back();
    for (int32_t j = 0; j < 16; ++j) voice.frames.back()[static_cast<size_t>(j)] = 10 * i + j;
  }
  PromptRequest clone = request("auto", &voice);
  clone.ids.reference = {kStart, kAssistant, kNewline, 40, 50, kEnd, kNewline};
  std::vector<Row> codec_side = no_language();
  codec_side.push_back(voice.speaker);
  const std::vector<int32_t> spoken = {40, 50, 10, 20, 30, talker_->config().tts_eos};  // six rows of text, seven of codec

  std::vector<Row> rows = opening(codec_side);
  std::vector<Row> codes = {codec(357)};
  for (const Frame& each : voice.frames) codes.push_back(frame(each));
  for (size_t i = 0; i < codes.size(); ++i) rows.push_back(sum(i < 6 ? text(spoken[i]) : pad(), codes[i]));
  expect_rows(talker_->prompt(clone).rows, rows);
  expect_rows(talker_->prompt(clone).trailing, {pad()});

  voice.frames.resize(2);  // the text is longer
  rows.resize(rows.size() - 4);
  expect_rows(talker_->prompt(clone).rows, rows);
  expect_rows(talker_->prompt(clone).trailing, {text(20), text(30), text(talker_->config().tts_eos)});

  clone.streaming_text = false;
  rows = opening(codec_side);
  for (const int32_t id : spoken) rows.push_back(sum(text(id), codec(356)));
  for (size_t i = 0; i < 3; ++i) rows.push_back(sum(pad(), codes[i]));
  expect_rows(talker_->prompt(clone).rows, rows);
  expect_rows(talker_->prompt(clone).trailing, {pad()});
}

TEST_F(Forms, SpeakersAndInstructions) {
  make("custom_voice");
  Voice voice;
  voice.speaker_name = "RYAN";
  PromptRequest wanted = request("auto", &voice);
  wanted.ids.instruct = {kStart, 60, 70};
  std::vector<Row> codec_side = no_language();
  codec_side.push_back(codec(1269));
  std::vector<Row> rows = opening(codec_side);
  rows.insert(rows.begin(), {text(kStart), text(60), text(70)});
  rows.push_back(sum(text(10), codec(357)));
  expect_rows(talker_->prompt(wanted).rows, rows);
  make("custom_voice", "0b6");  // was not trained for instructions
  rows.erase(rows.begin(), rows.begin() + 3);
  expect_rows(talker_->prompt(wanted).rows, rows);
}

TEST_F(Forms, Dialects) {
  make("custom_voice");
  Voice voice;
  voice.speaker_name = "dylan";
  const auto length_and_language = [&](const std::string& language) {
    const Prompt prompt = talker_->prompt(request(language, &voice));
    return std::pair(prompt.length, Row(prompt.rows.begin() + 5 * hidden_, prompt.rows.begin() + 6 * hidden_));
  };
  // Beijing's dialect where the text may be Chinese.
  const Row dialect = sum(pad(), codec(282));
  EXPECT_EQ(length_and_language("auto"), std::pair(int64_t{10}, dialect));
  EXPECT_EQ(length_and_language("Chinese"), std::pair(int64_t{10}, dialect));
  EXPECT_EQ(length_and_language("english"), std::pair(int64_t{10}, sum(pad(), codec(258))));
  EXPECT_EQ(length_and_language("beijing_dialect"), std::pair(int64_t{10}, dialect));
  voice.speaker_name = "ryan";
  EXPECT_EQ(length_and_language("auto").first, 9);
}

TEST_F(Forms, NamesThatAreUnknown) {
  EXPECT_EQ(error_of([&] { talker_->prompt(request("klingon")); }),
            "language \"klingon\" is unknown; there are auto, chinese, english, french, german, italian, japanese, korean, "
            "portuguese, russian, spanish");
  EXPECT_NE(error_of([&] { talker_->prompt(request("")); }), "");
  Voice voice;
  voice.speaker_name = "ryan";
  EXPECT_EQ(error_of([&] { talker_->prompt(request("auto", &voice)); }), "speaker \"ryan\": this model has no speakers by name");
  make("custom_voice");
  voice.speaker_name = "bob";
  EXPECT_EQ(error_of([&] { talker_->prompt(request("auto", &voice)); }), "speaker \"bob\" is unknown; there are dylan, ryan");
}

TEST_F(Forms, VoicesThatDoNotFit) {
  Voice voice;
  voice.speaker.assign(63, 0.0F);
  const auto complaint = [&] { return error_of([&] { talker_->prompt(request("auto", &voice)); }); };
  EXPECT_EQ(complaint(), "a voice of 63 values does not fit this model, whose voices have 64");
  voice.speaker.assign(64, 0.0F);
  EXPECT_EQ(complaint(), "");
  voice.speaker[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(complaint(), "a value of the voice is not finite");
  voice.speaker[3] = 0;
  voice.frames.resize(1);
  EXPECT_EQ(complaint(), "a voice with reference frames needs the text that they speak");
  PromptRequest clone = request("auto", &voice);
  clone.ids.reference = {kStart, kAssistant, kNewline, 40, kEnd, kNewline};
  voice.frames[0][7] = 256;
  EXPECT_EQ(error_of([&] { talker_->prompt(clone); }), "code 256 of codebook 7 is outside of 0..255");
  voice.frames.clear();
  make("voice_design");
  EXPECT_EQ(complaint(), "this model takes no voice of a reference; only a base model does");
  voice.speaker.clear();
  voice.frames.resize(1);
  EXPECT_EQ(error_of([&] { talker_->prompt(clone); }), "");  // a voice design goes on from what it said first
  make("custom_voice");
  EXPECT_EQ(error_of([&] { talker_->prompt(clone); }), "this model continues no reference frames; its voices have names");
}

TEST_F(Forms, TextsThatAreNone) {
  EXPECT_EQ(error_of([&] { talker_->prompt({ids({}), "auto", nullptr, true}); }), "there is no text to speak");
  EXPECT_EQ(error_of([&] { talker_->prompt({{}, "auto", nullptr, true}); }), "the ids of the text are not those of its template");
  PromptRequest bare = request();
  bare.ids.text.erase(bare.ids.text.begin());
  EXPECT_EQ(error_of([&] { talker_->prompt(bare); }), "the ids of the text are not those of its template");
  EXPECT_EQ(error_of([&] {
              talker_->prompt({ids({10, 464}), "auto", nullptr, true});
            }),
            "text id 464 is outside of the vocabulary of 464");
  EXPECT_NE(error_of([&] { talker_->prompt({ids({-1}), "auto", nullptr, true}); }), "");
}

// What stands in the prompt is projected in one go, in chunks of any size.
TEST_F(Forms, RowsDoNotDependOnTheirCompany) {
  std::vector<int32_t> many;
  for (int32_t i = 0; i < 100; ++i) many.push_back(i % 400);
  const Prompt whole = talker_->prompt({ids(many), "auto", nullptr, false});
  for (const int64_t chunk : {1, 7}) {
    TalkerOptions options;
    options.context = 256;
    options.chunk = chunk;
    options.precision = Precision::kFp32;
    const Talker other(weights_, options);
    EXPECT_EQ(other.prompt({ids(many), "auto", nullptr, false}).rows, whole.rows) << chunk;
  }
}

}  // namespace
}  // namespace ref::tts
