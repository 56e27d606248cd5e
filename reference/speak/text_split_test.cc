// SPDX-License-Identifier: Apache-2.0
// Pieces of long texts, and how many frames a text is given.
#include "reference/speak/text_split.h"

#include <gtest/gtest.h>

#include "reference/speak/speech_weight.h"
#include "reference/text/utf8.h"

namespace ref::speak {
namespace {

using Pieces = std::vector<std::string>;

SplitText split(std::string_view text, int64_t letters = 300, const std::string& language = "auto") {
  return split_text(text, {letters, language});
}

// What is spoken, without blanks.
std::string letters_of(const std::string& text) {
  std::string letters;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Head head = utf8_head(rest);
    if (!is_blank(head.character)) letters += rest.substr(0, head.length);
    rest.remove_prefix(head.length);
  }
  return letters;
}

// Every letter is in one piece, in order, and no piece is beyond its length.
void expect_whole(const std::string& text, int64_t letters, const SplitText& split) {
  std::string joined;
  for (const std::string& piece : split.pieces) {
    joined += letters_of(piece);
    EXPECT_LE(speech_weight(piece), 25 * letters) << piece;
    EXPECT_EQ(utf8_lossy(piece), piece);
    EXPECT_FALSE(is_blank(utf8_head(piece).character)) << piece;
  }
  if (split.left_out == 0) {
    EXPECT_EQ(joined, letters_of(text));
  }
}

TEST(Split, AShortTextIsOnePiece) {
  EXPECT_EQ(split("Hello. How are you? Fine!").pieces, Pieces{"Hello. How are you? Fine!"});
  EXPECT_EQ(split("  \n hello \t\n").pieces, Pieces{"hello"});
  EXPECT_EQ(split("\xEF\xBB\xBFhello").pieces, Pieces{"hello"});  // a byte order mark
}

TEST(Split, CutsBehindSentences) {
  const Pieces pieces = split("The first sentence is here. The second one follows it! Is the third a question? Yes.", 36).pieces;
  EXPECT_EQ(pieces, (Pieces{"The first sentence is here.", "The second one follows it!", "Is the third a question? Yes."}));
}

TEST(Split, CutsBehindChineseSentences) {
  const std::string text = "今天天气很好。我们去公园散步吧！你觉得怎么样？";
  EXPECT_EQ(split(text, 30).pieces, (Pieces{"今天天气很好。", "我们去公园散步吧！", "你觉得怎么样？"}));
  EXPECT_EQ(split(text).pieces, Pieces{text});
}

TEST(Split, AbbreviationsEndNoSentence) {
  const std::string text = "We saw Dr. Smith and Mr. Jones there. They were well.";
  EXPECT_EQ(split(text, 48, "english").pieces, (Pieces{"We saw Dr. Smith and Mr. Jones there.", "They were well."}));
}

TEST(Split, PiecesAreAlike) {
  std::string text;
  for (int i = 0; i < 11; ++i) text += "This has exactly thirty letters. ";  // 11 * 29 letters or so
  const SplitText pieces = split(text, 300);
  ASSERT_EQ(pieces.pieces.size(), 2U);
  EXPECT_LE(std::abs(speech_weight(pieces.pieces[0]) - speech_weight(pieces.pieces[1])), 40 * 25);
}

// Three and two sentences are more alike than two and three, as the last is longer; a paragraph outweighs that.
TEST(Split, ParagraphsAreGoodPlaces) {
  const std::string one = "A sentence of some length here. ", longer = "A sentence of some length herewith.";
  for (const std::string& gap : {std::string(), std::string("\n\n")}) {
    const SplitText pieces = split(one + one + gap + one + one + longer, 100);
    ASSERT_EQ(pieces.pieces.size(), 2U);
    EXPECT_EQ(letters_of(pieces.pieces[0]), letters_of(gap.empty() ? one + one + one : one + one));
  }
}

TEST(Split, ASentenceThatNeverEnds) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 9 == 8 ? "then, " : "word ";
  const SplitText pieces = split(text, 100);
  expect_whole(text, 100, pieces);
  EXPECT_GE(pieces.pieces.size(), 15U);
  for (size_t i = 0; i + 1 < pieces.pieces.size(); ++i) EXPECT_TRUE(pieces.pieces[i].ends_with(',')) << pieces.pieces[i];
}

TEST(Split, NoPlaceToCutAtAll) {
  const std::string text(5000, 'x');
  const SplitText pieces = split(text, 100);
  expect_whole(text, 100, pieces);
  EXPECT_EQ(pieces.pieces.size(), 50U);
  std::string chinese;
  for (int i = 0; i < 2000; ++i) chinese += "字";
  expect_whole(chinese, 100, split(chinese, 100));
}

// Characters as readers see them stay whole.
TEST(Split, NeverInsideOfACharacter) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "e\xCC\x81";  // e and a combining acute
  for (const std::string& piece : split(text, 7).pieces) {
    EXPECT_TRUE(piece.starts_with('e')) << piece;
    EXPECT_EQ(piece.size() % 3, 0U);
  }
  std::string marks = "a";
  for (int i = 0; i < 3000; ++i) marks += "\xCC\x81";  // one character, longer than any piece
  EXPECT_FALSE(split(marks, 10).pieces.empty());
}

TEST(Split, TwentyThousandCharactersOfMixedLanguages) {
  std::string text;
  const char* sentences[] = {"The weather is fine today, is it not? ",
                             "今天天气很好，我们去公园吧。",
                             "こんにちは、元気ですか？",
                             "안녕하세요. 만나서 반갑습니다. ",
                             "¿Qué hora es? ",
                             "مرحبا بالعالم. ",
                             "Съешь ещё этих булок! ",
                             "ไปโรงเรียนทุกวัน ",
                             "See example.com at 10:30, v1.2.3. "};
  int64_t characters = 0;
  for (int i = 0; characters < 20000; ++i) {
    const std::string sentence = sentences[i % std::size(sentences)];
    text += sentence;
    for (std::string_view rest = sentence; !rest.empty(); rest.remove_prefix(utf8_head(rest).length)) ++characters;
  }
  const SplitText pieces = split(text);
  expect_whole(text, 300, pieces);
  EXPECT_EQ(pieces.left_out, 0);
  EXPECT_GT(pieces.pieces.size(), 60U);
  EXPECT_LT(pieces.pieces.size(), 200U);
}

// AC-063
TEST(Split, TextsWithNothingToSay) {
  for (const char* text :
       {"", " ", "\n", "\n\n\n", "。", "...", "\xE2\x80\x8B", "\xF0\x9F\x98\x80", "?!", "-", "\xEF\xBB\xBF", "*"}) {
    EXPECT_EQ(split(text).pieces, Pieces{}) << text;
    EXPECT_EQ(split(text, 0).pieces, Pieces{}) << text;
  }
  EXPECT_EQ(split("ok \xF0\x9F\x98\x80").pieces, Pieces{"ok \xF0\x9F\x98\x80"});
  EXPECT_EQ(split("50 %").pieces, Pieces{"50 %"});
  EXPECT_EQ(split("€").pieces, Pieces{"€"});
}

TEST(Split, WhatNobodyCanSpeakIsLeftOut) {
  std::string text = "One sentence.";
  for (int i = 0; i < 500; ++i) text += "\xF0\x9F\x98\x80";
  text += " Another one.";
  const SplitText pieces = split(text, 40);
  EXPECT_GT(pieces.left_out, 400);
  for (const std::string& piece : pieces.pieces) EXPECT_NE(piece.find("One"), piece.find("Another"));
}

TEST(Split, BytesThatAreNoText) {
  for (const std::string& bytes : Pieces{"\xE6\xAD", "\xFF\xFF\xFF", "\xC0\x80", "\xED\xA0\x80", std::string("\0", 1)}) {
    EXPECT_EQ(split(bytes).pieces, Pieces{});
    EXPECT_EQ(split("ab" + bytes).pieces.size(), 1U);
  }
  expect_whole(utf8_lossy(std::string(3000, '\x80')), 50, split(std::string(3000, '\x80') + "a", 50));
}

TEST(Split, ZeroNeverCuts) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "A sentence. ";
  EXPECT_EQ(split(text, 0).pieces.size(), 1U);
}

// AC-062: what a text of a syllable or two is given, in frames of 80 ms.
TEST(Budget, ShortTextsHaveASaneOne) {
  EXPECT_EQ(default_frames("1次"), 58);  // 4.6 s
  EXPECT_EQ(default_frames("2次"), 58);
  EXPECT_EQ(default_frames("1"), 50);
  EXPECT_EQ(default_frames("1。"), 54);
  EXPECT_EQ(default_frames("嗯？"), 50);
  EXPECT_EQ(default_frames(""), 38);
}

TEST(Budget, GrowsWithTheText) {
  const std::string sentence = "This is an ordinary sentence of about sixty letters, or so it is.";  // about 4 s
  EXPECT_GE(default_frames(sentence), 150);
  EXPECT_LE(default_frames(sentence), 250);
  std::string text;
  for (int i = 0; i < 10; ++i) text += "语音合成的结果。";  // 70 syllables: some 16 s
  EXPECT_GE(default_frames(text), 500);
  EXPECT_LE(default_frames(text), 700);
  EXPECT_EQ(default_frames("......................"), default_frames("."));
  EXPECT_EQ(default_frames("a                    b"), default_frames("a b"));
  EXPECT_EQ(default_frames("\xE2\x80\x8B\xE2\x80\x8B"), default_frames(""));
  EXPECT_GT(default_frames("IBM"), default_frames("ibm"));
  EXPECT_GE(default_frames("2350"), 85);  // two thousand three hundred and fifty
}

}  // namespace
}  // namespace ref::speak
