// SPDX-License-Identifier: Apache-2.0
// How long a text may take to speak: the measure by which long texts are cut and runs are limited.
#pragma once

#include <cstdint>
#include <string_view>

namespace ref::speak {

// Tenths of a frame that a character takes in very slow speech, about three times what it usually does. Ideographs, kana and
// syllables of hangul: 80. Digits and symbols, which are read as words: 120. Capitals, as they may be spelled: 75. Letters of
// scripts that leave vowels unwritten: 40; other letters: 25. Of a run of punctuation or white space the first counts 40 or 10.
// What has no width counts nothing.
class SpeechWeight {
 public:
  int64_t of(char32_t character);

 private:
  enum class Run : uint8_t { kNone, kPunctuation, kSpace };
  Run run_ = Run::kNone;
};

// Of a text in UTF-8.
int64_t speech_weight(std::string_view text);

// Frames that a piece of text is given when nobody says otherwise: 3 s and its weight, rounded up.
int64_t default_frames(std::string_view text);

// Whether a character makes a text one that can be spoken: letters, numbers, signs of currency and mathematics, % & @ #.
bool is_speakable(char32_t character);

// White space, and characters without width that may stand at either end of a text.
bool is_blank(char32_t character);

}  // namespace ref::speak
