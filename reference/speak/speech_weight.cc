// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/speech_weight.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "reference/text/utf8.h"

namespace ref::speak {
namespace {

constexpr int64_t kBase = 375;  // 3 s of 12.5 frames: breath before and after, and a text of one digit

bool is_syllable(UChar32 character) {
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(character, &status)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_HANGUL:
    case USCRIPT_BOPOMOFO:
    case USCRIPT_YI:
      return true;
    default:
      return false;
  }
}

int64_t letter_weight(UChar32 character, uint32_t category) {
  if (is_syllable(character)) return 80;
  if ((category & (U_GC_LU_MASK | U_GC_LT_MASK)) != 0) return 75;
  return (category & U_GC_LO_MASK) != 0 ? 40 : 25;
}

}  // namespace

int64_t SpeechWeight::of(char32_t character) {
  const auto point = static_cast<UChar32>(character);
  const uint32_t category = U_GET_GC_MASK(point);
  const Run before = run_;
  if (u_isUWhiteSpace(point) != 0) {
    run_ = Run::kSpace;
    return before == Run::kSpace ? 0 : 10;
  }
  if ((category & (U_GC_CF_MASK | U_GC_CC_MASK | U_GC_CN_MASK | U_GC_CO_MASK | U_GC_CS_MASK)) != 0) return 0;
  if ((category & U_GC_P_MASK) != 0 && !is_speakable(character)) {
    run_ = Run::kPunctuation;
    return before == Run::kPunctuation ? 0 : 40;
  }
  run_ = Run::kNone;
  if ((category & U_GC_L_MASK) != 0) return letter_weight(point, category);
  if ((category & U_GC_M_MASK) != 0) return 25;
  return 120;
}

int64_t speech_weight(std::string_view text) {
  SpeechWeight weight;
  int64_t sum = 0;
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    sum += weight.of(head.valid ? head.character : U'\uFFFD');
    text.remove_prefix(head.length);
  }
  return sum;
}

int64_t default_frames(std::string_view text) { return (kBase + speech_weight(text) + 9) / 10; }

bool is_speakable(char32_t character) {
  if (character == U'%' || character == U'&' || character == U'@' || character == U'#') return true;
  return (U_GET_GC_MASK(static_cast<UChar32>(character)) & (U_GC_L_MASK | U_GC_N_MASK | U_GC_SC_MASK | U_GC_SM_MASK)) != 0;
}

bool is_blank(char32_t character) {
  const auto point = static_cast<UChar32>(character);
  return u_isUWhiteSpace(point) != 0 || (U_GET_GC_MASK(point) & (U_GC_CC_MASK | U_GC_CF_MASK)) != 0;
}

}  // namespace ref::speak
