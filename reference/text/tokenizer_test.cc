// SPDX-License-Identifier: Apache-2.0
// Every golden of the tokenizers: pieces, ids, decoded text. The small one is in the repository, the others where OMNI_GOLDENS is.
#include "reference/text/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "reference/core/error.h"
#include "reference/text/byte_level.h"

namespace ref {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

fs::path data() { return fs::path(OMNI_TEST_DATA) / "tokenizer"; }
std::optional<fs::path> goldens() {
  const char* directory = std::getenv("OMNI_GOLDENS");
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  return fs::path(directory) / "tokenizer";
}

json read_json(const fs::path& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  return json::parse(stream);
}

std::vector<json> read_lines(const fs::path& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  std::vector<json> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(json::parse(line));
  }
  return lines;
}

void check_encoding(const Tokenizer& tokenizer, const fs::path& file, bool has_added) {
  const std::vector<json> cases = read_lines(file);
  ASSERT_EQ(cases.size(), 485U);
  for (const json& one : cases) {
    const auto text = one["text"].get<std::string>();
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids, false), one.value("decoded", text)) << text;
    if (has_added && tokenizer.encode(text, Tokenizer::AddedTokens::kAsText) != ids) continue;  // pieces ignore added tokens
    EXPECT_EQ(tokenizer.pieces(text), one["pieces"].get<std::vector<std::string>>()) << text;
  }
}

void check_decoding(const Tokenizer& tokenizer, const fs::path& file) {
  const std::vector<json> cases = read_lines(file);
  ASSERT_EQ(cases.size(), 60U);
  for (const json& one : cases) {
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    for (const bool skip : {false, true}) {
      const std::string expected = one[skip ? "skip_special" : "keep_special"].get<std::string>();
      EXPECT_EQ(tokenizer.decode(ids, skip), expected);
      StreamingDecoder stream(tokenizer, skip);
      std::string streamed;
      for (const int32_t id : ids) {
        const std::string part = stream.push(id);
        EXPECT_EQ(utf8_lossy(part), part);  // never a part of a character
        streamed += part;
      }
      EXPECT_EQ(streamed + stream.finish(), expected);
    }
  }
}

TEST(SparkSmall, EncodesAndDecodesEveryGolden) {
  const Tokenizer tokenizer = Tokenizer::load(data() / "spark_small" / "tokenizer.json");
  check_encoding(tokenizer, data() / "spark_small.jsonl", true);
  check_decoding(tokenizer, data() / "spark_small.decode.jsonl");
}

TEST(Qwen3, EncodesAndDecodesEveryGolden) {
  if (!goldens()) GTEST_SKIP() << "OMNI_GOLDENS is not set";
  const Tokenizer tokenizer = Tokenizer::load(*goldens() / "qwen3" / "tokenizer.json");
  check_encoding(tokenizer, *goldens() / "qwen3.jsonl", true);
  check_decoding(tokenizer, *goldens() / "qwen3.decode.jsonl");
}

TEST(QwenVocabularyBehindSparkPieces, EncodesAndDecodesEveryGolden) {
  if (!goldens()) GTEST_SKIP() << "OMNI_GOLDENS is not set";
  json description = read_json(*goldens() / "qwen3" / "tokenizer.json");
  const json spark = read_json(*goldens() / "spark_small" / "tokenizer.json");
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) description[part] = spark[part];
  description["added_tokens"] = json::array();
  const Tokenizer tokenizer(description);
  check_encoding(tokenizer, *goldens() / "hybrid_qwenvocab_sparkpre.jsonl", false);
  check_decoding(tokenizer, *goldens() / "hybrid_qwenvocab_sparkpre.decode.jsonl");
}

class SparkTokenizer : public testing::Test {
 protected:
  json description_ = read_json(data() / "spark_small" / "tokenizer.json");

  void refused(const char* word) {
    try {
      const Tokenizer tokenizer(description_);
      FAIL() << "accepted: " << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
};

TEST_F(SparkTokenizer, UserTextNeverBecomesAnAddedToken) {
  const Tokenizer tokenizer(description_);
  EXPECT_EQ(tokenizer.encode("<think>"), std::vector<int32_t>{3});
  for (const int32_t id : tokenizer.encode("a<think>b</think>", Tokenizer::AddedTokens::kAsText))
    EXPECT_FALSE(tokenizer.is_special(id));
}

TEST_F(SparkTokenizer, InvalidUtf8IsReplaced) {
  const Tokenizer tokenizer(description_);
  EXPECT_EQ(tokenizer.encode("a\xFF\xE2\x82z"), tokenizer.encode("a\xEF\xBF\xBD\xEF\xBF\xBDz"));
}

TEST_F(SparkTokenizer, LongRunsTakeNoQuadraticTime) {
  const Tokenizer tokenizer(description_);
  const std::string run(200000, 'a');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(run), false), run);
  std::string tokens;
  for (int i = 0; i < 50000; ++i) tokens += "<think>";
  EXPECT_EQ(tokenizer.encode(tokens).size(), 50000U);
}

TEST_F(SparkTokenizer, RefusesWhatItDoesNotKnow) {
  const json whole = description_;
  const auto spoiled = [&](const char* word, const std::function<void(json&)>& spoil) {
    description_ = whole;
    spoil(description_);
    refused(word);
  };
  spoiled("pre_tokenizer", [](json& d) { d.erase("pre_tokenizer"); });
  spoiled("Whitespace", [](json& d) { d["pre_tokenizer"] = {{"type", "Whitespace"}}; });
  spoiled("NFKC", [](json& d) { d["normalizer"] = {{"type", "NFKC"}}; });
  spoiled("behavior", [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; });
  spoiled("pattern", [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "("; });
  spoiled("Unigram", [](json& d) { d["model"]["type"] = "Unigram"; });
  spoiled("byte_fallback", [](json& d) { d["model"]["byte_fallback"] = true; });
  spoiled("vocab", [](json& d) { d["model"].erase("vocab"); });
  spoiled("id", [](json& d) { d["model"]["vocab"]["a"] = -1; });
  spoiled("id", [](json& d) { d["model"]["vocab"]["a"] = 1LL << 40; });
  spoiled("share", [](json& d) { d["model"]["vocab"]["a"] = d["model"]["vocab"]["b"]; });
  spoiled("merge 0", [](json& d) { d["model"]["merges"][0] = "onlyone"; });
  spoiled("lacks", [](json& d) { d["model"]["merges"][0] = {"\u00ff\u00ff", "x"}; });
  spoiled("unk_token", [](json& d) { d["model"]["unk_token"] = "<nowhere>"; });
  spoiled("decoder", [](json& d) { d["decoder"] = {{"type", "WordPiece"}}; });
  spoiled("lstrip", [](json& d) { d["added_tokens"][0]["lstrip"] = true; });
}

// A pattern of kind String is the characters themselves, whatever they would mean as an expression.
TEST_F(SparkTokenizer, LiteralSplitIsLiteral) {
  const auto pieces = [&](const char* kind) {
    description_["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers", {{{"type", "Split"}, {"pattern", {{kind, "\\p{N}"}}}, {"behavior", "Isolated"}, {"invert", false}}}}};
    return Tokenizer(description_).pieces("a1\\p{N}b");
  };
  EXPECT_EQ(pieces("String"), (std::vector<std::string>{"a1", "\\p{N}", "b"}));
  EXPECT_EQ(pieces("Regex"), (std::vector<std::string>{"a", "1", "\\p{N}b"}));
}

TEST_F(SparkTokenizer, BrokenBytesNeverThrow) {
  const Tokenizer tokenizer(description_);
  for (const std::string& bytes : {std::string("\xE6\xAD"), std::string("\xFF"), std::string("\xC0\x80"),
                                   std::string("\xED\xA0\x80"), std::string(), std::string(1 << 20, '\x80')}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes), false), utf8_lossy(bytes));
  }
}

TEST(Load, NamesTheFile) {
  const fs::path absent = fs::path(testing::TempDir()) / "no-such-tokenizer.json";
  EXPECT_THROW(
      try { Tokenizer::load(absent); } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(absent.string()), std::string::npos);
        throw;
      },
      Error);
}

TEST(ByteLevel, RoundTripsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  std::string back;
  EXPECT_TRUE(from_byte_level(to_byte_level(bytes), &back));
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace ref
