// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a model directory and the templates, against ids of the reference implementation.
#include "reference/qwen3_tts/model/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/qwen3_tts/model/test_models.h"
#include "tests/support/temporary_directory.h"

namespace ref::tts {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using test::error_of;
using test::golden_path;
using Added = Tokenizer::AddedTokens;
using Ids = std::vector<int32_t>;

void check_cases(const Tokenizer& tokenizer, const fs::path& file, size_t least) {
  const json cases = read_json_object(file)["cases"];
  ASSERT_GE(cases.size(), least);
  for (const json& one : cases) {
    const auto text = one["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), one["ids"].get<Ids>()) << text;
  }
}

fs::path small() { return golden_path(test::kSmallModel); }

TEST(TtsTokenizer, SmallVocabulary) {
  OMNI_NEEDS_GOLDEN(small());
  const Tokenizer tokenizer = load_tokenizer(small());
  check_cases(tokenizer, golden_path("golden/tokenizer_cases.json"), 20);
  EXPECT_EQ(tokenizer.id_of("<|im_end|>"), 432);
  EXPECT_EQ(tokenizer.size(), 440);
}

// The published vocabulary is that of other models of the family; what a model directory would hold is made of it here.
TEST(TtsTokenizer, PublishedVocabulary) {
  const char* goldens = std::getenv("OMNI_GOLDENS");
  const fs::path source = goldens == nullptr ? fs::path() : fs::path(goldens) / "tokenizer" / "qwen3" / "tokenizer.json";
  const fs::path cases = golden_path("golden/tokenizer_real_cases.json");
  if (!fs::exists(source) || cases.empty()) GTEST_SKIP() << "OMNI_GOLDENS names no directory with the full vocabulary";
  const json description = read_json_object(source);
  const omni_files::TemporaryDirectory directory;
  std::ofstream(directory / "vocab.json") << description["model"]["vocab"];
  std::ofstream merges(directory / "merges.txt");
  merges << "#version: 0.2\n";
  for (const json& merge : description["model"]["merges"]) {
    merges << merge[0].get<std::string>() << ' ' << merge[1].get<std::string>() << '\n';
  }
  merges.close();
  json config;
  const std::map<int, const char*> added = {{151643, "<|endoftext|>"},   {151644, "<|im_start|>"}, {151645, "<|im_end|>"},
                                            {151669, "<|audio_start|>"}, {151671, "<tts_pad>"},    {151672, "<tts_text_bos>"},
                                            {151673, "<tts_text_eod>"},  {151675, "<|audio_pad|>"}};
  for (const auto& [id, content] : added) {
    config["added_tokens_decoder"][std::to_string(id)] = {{"content", content}, {"special", true}, {"normalized", false}};
  }
  std::ofstream(directory / "tokenizer_config.json") << config;
  check_cases(load_tokenizer(directory.path()), cases, 30);
}

TEST(TtsTokenizer, FilesThatAreWrong) {
  OMNI_NEEDS_GOLDEN(small());
  const omni_files::TemporaryDirectory directory;
  for (const char* file : {"vocab.json", "merges.txt", "tokenizer_config.json"}) fs::copy(small() / file, directory / file);
  const auto complaint = [&](const char* file, const std::string& content) {
    const fs::path path = directory / file;
    if (content.empty()) {
      fs::remove(path);
    } else {
      std::ofstream(path) << content;
    }
    const std::string error = error_of([&] { load_tokenizer(directory.path()); });
    fs::copy(small() / file, path, fs::copy_options::overwrite_existing);
    return error;
  };
  EXPECT_NE(complaint("vocab.json", "").find("vocab.json: cannot be opened"), std::string::npos);
  EXPECT_NE(complaint("merges.txt", "").find("merges.txt: cannot be opened"), std::string::npos);
  EXPECT_NE(complaint("merges.txt", "#version: 0.2\ne r\nnt\n").find("merges.txt: line 3 is no pair"), std::string::npos);
  EXPECT_NE(complaint("merges.txt", "e r t\n").find("line 1 is no pair"), std::string::npos);
  EXPECT_NE(complaint("vocab.json", "[1]").find("vocab.json: is no JSON object"), std::string::npos);
  EXPECT_NE(complaint("vocab.json", R"({"a": 99999999999})").find("is none"), std::string::npos);
  EXPECT_NE(complaint("tokenizer_config.json", "{}").find("has no added_tokens_decoder"), std::string::npos);
  EXPECT_NE(complaint("tokenizer_config.json", R"({"added_tokens_decoder": {"-1": {"content": "x"}}})").find("\"-1\" is no token"),
            std::string::npos);
  EXPECT_NE(complaint("merges.txt", "# e\n").find("merge 0 needs"), std::string::npos);  // a merge of #, not a comment
}

class Templates : public testing::Test {
 protected:
  void SetUp() override {
    if (small().empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    tokenizer_.emplace(load_tokenizer(small()));
    json object = read_json_object(small() / "config.json");
    object["speech_tokenizer"] = read_json_object(small() / "speech_tokenizer" / "config.json");
    config_ = read_config(object, "dir");
    templates_.emplace(*tokenizer_, config_, "dir");
  }
  Ids spoken(const std::string& text, Added added = Added::kAsText) const {
    const Ids ids = templates_->text(text, added);
    return {ids.begin() + 3, ids.end() - 5};
  }

  std::optional<Tokenizer> tokenizer_;
  Config config_;
  std::optional<TextTemplates> templates_;
};

TEST_F(Templates, AreTheWholeTextEncodedAtOnce) {
  for (const std::string text : {"hello world, this is a test.", "", "  two  spaces  ", "你好", "x\n\ny\n"}) {
    EXPECT_EQ(templates_->text(text, Added::kMatch),
              tokenizer_->encode("<|im_start|>assistant\n" + text + "<|im_end|>\n<|im_start|>assistant\n"));
    EXPECT_EQ(templates_->reference(text, Added::kMatch), tokenizer_->encode("<|im_start|>assistant\n" + text + "<|im_end|>\n"));
    EXPECT_EQ(templates_->instruct(text, Added::kMatch), tokenizer_->encode("<|im_start|>user\n" + text + "<|im_end|>\n"));
  }
  EXPECT_TRUE(templates_->all("a", "", "").reference.empty());
  EXPECT_TRUE(templates_->all("a", "", "").instruct.empty());
}

// The goldens hold the ids that the reference made of these texts.
TEST_F(Templates, IdsOfTheGoldens) {
  const fs::path file = golden_path(test::kSmallGolden);
  OMNI_NEEDS_GOLDEN(file);
  const omni_files::SafetensorsFile golden = test::open_golden(file);
  const json info = json::parse(golden.metadata().at("info"));
  const std::vector<int64_t> ids = golden.at("input_ids").as<int64_t>();
  EXPECT_EQ(templates_->text(info["text"].get<std::string>(), Added::kAsText), Ids(ids.begin(), ids.end()));
}

TEST_F(Templates, LineBreaksInFrontTakeNoTextWithThem) {
  const Ids plain = spoken("hello");
  for (const char* text : {"\nhello", "\n\n\nhello", "\r\nhello", " \n\u3000\nhello", "\t\r\n\nhello"}) {
    EXPECT_EQ(spoken(text), plain) << text;
    const Ids ids = templates_->text(text, Added::kAsText);
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + 3), (Ids{config_.im_start, config_.assistant, *tokenizer_->id_of("\u010a")}));
  }
  EXPECT_EQ(spoken("  hello"), tokenizer_->encode("  hello"));  // joins nothing
  EXPECT_EQ(spoken("\n \n  hello"), tokenizer_->encode("  hello"));
  EXPECT_TRUE(spoken("\n\n").empty());
}

// What a user writes must not end the turn; the reference lets it.
TEST_F(Templates, AddedTokensOfAUserAreText) {
  EXPECT_EQ(spoken("a<|im_end|>b"), tokenizer_->encode("a<|im_end|>b", Added::kAsText));
  EXPECT_GT(spoken("a<|im_end|>b").size(), 3U);
  const Ids obeyed = spoken("a<|im_end|>b", Added::kMatch);
  EXPECT_EQ(obeyed, (Ids{64, config_.im_end, 65}));
  for (const int32_t id : spoken("<|im_start|><tts_pad>")) EXPECT_FALSE(tokenizer_->is_special(id));
}

TEST_F(Templates, TokensThatTheConfigHasElsewhere) {
  const auto complaint = [&](int32_t Config::*id, int32_t value) {
    Config config = config_;
    config.*id = value;
    return error_of([&] { TextTemplates(*tokenizer_, config, "dir"); });
  };
  EXPECT_EQ(complaint(&Config::im_start, 7), "dir: \"im_start_token_id\" is 7, but the tokenizer has the id 431 for <|im_start|>");
  EXPECT_NE(complaint(&Config::assistant, 7), "");
  Config config = config_;
  config.talker.text_vocabulary = 400;
  EXPECT_EQ(error_of([&] { TextTemplates(*tokenizer_, config, "dir"); }),
            "dir: the tokenizer has ids up to 439, \"text_vocab_size\" is 400");
}

}  // namespace
}  // namespace ref::tts
