// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/stop_matcher.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/text/utf8.h"

namespace ref {
namespace {

struct Shown {
  std::string text;
  bool stopped;
  bool operator==(const Shown&) const = default;
};

// The text cut into pieces of `size` bytes at characters' borders, as a streaming decoder gives it.
Shown run(const std::vector<std::string>& stops, const std::string& text, size_t size) {
  StopMatcher matcher(stops);
  Utf8Stream stream;
  Shown shown{"", false};
  for (size_t at = 0; at < text.size(); at += size) {
    const std::string piece = matcher.push(stream.push(text.substr(at, size)));
    EXPECT_EQ(utf8_lossy(piece), piece);
    shown.text += piece;
  }
  shown.stopped = matcher.stopped();
  shown.text += matcher.finish();
  return shown;
}

void expect(const std::vector<std::string>& stops, const std::string& text, const Shown& wanted) {
  for (size_t size = 1; size <= text.size(); ++size) EXPECT_EQ(run(stops, text, size), wanted) << text << " by " << size;
}

TEST(StopMatcher, CutsBeforeTheStopTextWhateverThePieces) {
  expect({}, "all of it", {"all of it", false});
  expect({"END"}, "text END more", {"text ", true});
  expect({"END"}, "ENEND", {"EN", true});
  expect({"aab"}, "aaaab", {"aa", true});
  expect({"END"}, "END", {"", true});
  expect({"\n\n"}, "a\nb\n\nc", {"a\nb", true});
}

TEST(StopMatcher, WhatOnlyBeganIsShownAtTheEnd) {
  expect({"END"}, "text EN", {"text EN", false});
  expect({"abcabd"}, "abcabcab", {"abcabcab", false});
}

TEST(StopMatcher, TheFirstToBeCompleteWins) {
  expect({"abcd", "bc"}, "xabcd", {"xa", true});
  expect({"bc", "abcd"}, "xabcd", {"xa", true});
  expect({"bc", "abc"}, "xabc", {"x", true});  // complete at once: the longer
  expect({"zz", "b"}, "abzz", {"a", true});
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeOne) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.push("some E"), "some ");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("T"), "ENT");
  EXPECT_EQ(matcher.push("\n"), "");
  EXPECT_EQ(matcher.push("x"), "\nx");
  EXPECT_EQ(matcher.push("END"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("never shown"), "");
}

TEST(StopMatcher, KeepsCharactersWhole) {
  expect({"é"}, "caf\u00e3\u00e9!", {"caf\u00e3", true});
  expect({"\U0001F600b"}, "a\U0001F600\U0001F600c", {"a\U0001F600\U0001F600c", false});
}

TEST(StopMatcher, RefusesWhatNeverOrAlwaysMatches) {
  EXPECT_THROW(StopMatcher({"a", ""}), Error);
  EXPECT_THROW(StopMatcher({"\xff"}), Error);
}

}  // namespace
}  // namespace ref
