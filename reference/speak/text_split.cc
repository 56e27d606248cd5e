// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/text_split.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>

#include "reference/core/error.h"
#include "reference/speak/speech_weight.h"
#include "reference/text/utf8.h"

namespace ref::speak {
namespace {

constexpr int64_t kLetter = 25;  // speech weight of a small letter

// [begin, end) in UTF-16 units.
struct Segment {
  int32_t begin, end;
  int64_t weight;
  bool ends_paragraph;
};

void check(UErrorCode status, const char* what) {
  if (U_FAILURE(status) != 0) throw Error(std::string("ICU: ") + what + ": " + u_errorName(status));
}

// The locale whose abbreviations ("Dr.") ICU keeps inside of a sentence.
icu::Locale locale_of(const std::string& language) {
  static const std::map<std::string, const char*> kLocales = {
      {"chinese", "zh"},  {"english", "en"}, {"french", "fr"},     {"german", "de"},  {"italian", "it"},
      {"japanese", "ja"}, {"korean", "ko"},  {"portuguese", "pt"}, {"russian", "ru"}, {"spanish", "es"}};
  const auto found = kLocales.find(language);
  icu::Locale locale(found == kLocales.end() ? "en" : found->second);
  UErrorCode status = U_ZERO_ERROR;
  locale.setKeywordValue("ss", "standard", status);
  return locale;
}

class Splitter {
 public:
  Splitter(const icu::UnicodeString& text, const SplitOptions& options)
      : text_(text), limit_(options.letters * kLetter), locale_(locale_of(options.language)) {}

  std::vector<Segment> sentences();
  std::vector<Segment> join(const std::vector<Segment>& segments) const;

 private:
  using Iterator = std::unique_ptr<icu::BreakIterator>;
  using Make = icu::BreakIterator* (*)(const icu::Locale&, UErrorCode&);

  Iterator iterator(Make make, const char* what) const;
  int64_t weigh(int32_t begin, int32_t end) const;
  bool clause_ends_before(int32_t at) const;
  void add(int32_t begin, int32_t end, std::vector<Segment>* segments) const;
  void cut_long(int32_t begin, int32_t end, std::vector<Segment>* segments);

  const icu::UnicodeString& text_;
  int64_t limit_;
  icu::Locale locale_;
  Iterator lines_, characters_;
};

Splitter::Iterator Splitter::iterator(Make make, const char* what) const {
  UErrorCode status = U_ZERO_ERROR;
  Iterator made(make(locale_, status));
  check(status, what);
  made->setText(text_);
  return made;
}

int64_t Splitter::weigh(int32_t begin, int32_t end) const {
  SpeechWeight weight;
  int64_t sum = 0;
  for (int32_t at = begin; at < end; at = text_.moveIndex32(at, 1)) sum += weight.of(static_cast<char32_t>(text_.char32At(at)));
  return sum;
}

// Behind a comma, semicolon, colon, dash or closing bracket, white space after it included.
bool Splitter::clause_ends_before(int32_t at) const {
  while (at > 0 && u_isUWhiteSpace(text_.char32At(at - 1)) != 0) --at;
  static const icu::UnicodeString kMarks = icu::UnicodeString::fromUTF8(
      ",;:)]}\xE2\x80\x94\xE2\x80\x93\xE3\x80\x81\xEF\xBC\x8C"
      "\xEF\xBC\x9B\xEF\xBC\x9A\xEF\xBC\x89\xE2\x80\xA6\xD8\x8C");
  return at > 0 && kMarks.indexOf(text_.charAt(at - 1)) >= 0;
}

void Splitter::add(int32_t begin, int32_t end, std::vector<Segment>* segments) const {
  if (begin == end) return;
  const bool paragraph = u_getIntPropertyValue(text_.char32At(end - 1), UCHAR_SENTENCE_BREAK) == U_SB_SEP ||
                         text_.charAt(end - 1) == u'\n' || text_.charAt(end - 1) == u'\r';
  segments->push_back({begin, end, weigh(begin, end), paragraph});
}

// A sentence beyond the limit: as much as fits, up to the best place there is.
void Splitter::cut_long(int32_t begin, int32_t end, std::vector<Segment>* segments) {
  if (!lines_) lines_ = iterator(icu::BreakIterator::createLineInstance, "line breaks");
  if (!characters_) characters_ = iterator(icu::BreakIterator::createCharacterInstance, "characters");
  for (int64_t left = weigh(begin, end); begin < end;) {
    // As alike as the rest allows, with some room to find a good place.
    const int64_t parts = (left + limit_ - 1) / limit_, most = std::min(limit_, left / std::max<int64_t>(parts, 1) + limit_ / 8);
    SpeechWeight weight;
    int64_t sum = 0;
    int32_t clause = begin, line = begin, character = begin, at = begin;
    int64_t clause_sum = 0;
    while (at < end && sum <= most) {
      sum += weight.of(static_cast<char32_t>(text_.char32At(at)));
      at = text_.moveIndex32(at, 1);
      if (sum > most && character > begin) break;
      if (characters_->isBoundary(at) == 0) continue;
      character = at;
      if (at == end || lines_->isBoundary(at) != 0) line = at;
      if (line != at || !clause_ends_before(at)) continue;
      clause = at;
      clause_sum = sum;
    }
    int32_t cut = at < end || sum > most ? character : end;
    if (cut != end) cut = clause_sum * 3 >= most ? clause : line > begin ? line : cut;
    if (cut == begin) cut = at;  // one character that alone is beyond the limit
    add(begin, cut, segments);
    if (cut > begin) left -= segments->back().weight;
    begin = cut;
  }
}

std::vector<Segment> Splitter::sentences() {
  std::vector<Segment> segments;
  const Iterator sentences = iterator(icu::BreakIterator::createSentenceInstance, "sentences");
  int32_t begin = sentences->first();
  for (int32_t end = sentences->next(); end != icu::BreakIterator::DONE; begin = end, end = sentences->next()) {
    if (weigh(begin, end) > limit_) {
      cut_long(begin, end, &segments);
    } else {
      add(begin, end, &segments);
    }
  }
  return segments;
}

// The fewest pieces; of those ways the one with the least sum of squares, an end of a paragraph worth a tenth of a full piece's.
std::vector<Segment> Splitter::join(const std::vector<Segment>& segments) const {
  struct Best {
    int64_t pieces = std::numeric_limits<int64_t>::max();
    double cost = 0;
    size_t from = 0;
  };
  std::vector<Best> best(segments.size() + 1);
  best[0].pieces = 0;
  const double paragraph = 0.1 * static_cast<double>(limit_) * static_cast<double>(limit_);
  for (size_t end = 1; end <= segments.size(); ++end) {
    int64_t weight = 0;
    for (size_t begin = end; begin-- > 0;) {
      weight += segments[begin].weight;
      if (weight > limit_ && begin + 1 < end) break;
      const int64_t pieces = best[begin].pieces + 1;
      const double square = static_cast<double>(weight) * static_cast<double>(weight);
      const double cost = best[begin].cost + square - (segments[end - 1].ends_paragraph ? paragraph : 0);
      if (pieces < best[end].pieces || (pieces == best[end].pieces && cost < best[end].cost)) best[end] = {pieces, cost, begin};
    }
  }
  std::vector<Segment> joined;
  for (size_t end = segments.size(); end > 0; end = best[end].from) {
    const size_t begin = best[end].from;
    joined.push_back({segments[begin].begin, segments[end - 1].end, 0, false});
  }
  std::ranges::reverse(joined);
  return joined;
}

// Without blanks at its ends, added to `split`.
void add_piece(const icu::UnicodeString& text, Segment piece, SplitText* split) {
  const auto blank = [&](int32_t at) { return is_blank(static_cast<char32_t>(text.char32At(at))); };
  while (piece.begin < piece.end && blank(piece.begin)) piece.begin = text.moveIndex32(piece.begin, 1);
  while (piece.end > piece.begin && blank(text.moveIndex32(piece.end, -1))) piece.end = text.moveIndex32(piece.end, -1);
  bool speakable = false;
  int64_t characters = 0;
  for (int32_t at = piece.begin; at < piece.end; at = text.moveIndex32(at, 1), ++characters) {
    speakable = speakable || is_speakable(static_cast<char32_t>(text.char32At(at)));
  }
  if (!speakable) {
    split->left_out += characters;
    return;
  }
  std::string bytes;
  text.tempSubStringBetween(piece.begin, piece.end).toUTF8String(bytes);
  split->pieces.push_back(std::move(bytes));
}

}  // namespace

SplitText split_text(std::string_view text, const SplitOptions& options) {
  const icu::UnicodeString wide = icu::UnicodeString::fromUTF8(utf8_lossy(text));
  SplitText split;
  if (options.letters == 0) {
    add_piece(wide, {0, wide.length(), 0, false}, &split);
    return split;
  }
  Splitter splitter(wide, options);
  for (const Segment& piece : splitter.join(splitter.sentences())) add_piece(wide, piece, &split);
  return split;
}

}  // namespace ref::speak
