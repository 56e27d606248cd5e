// SPDX-License-Identifier: Apache-2.0
#include "reference/text/pretokenizer.h"

#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/text/byte_level.h"

namespace ref {
namespace {

using nlohmann::json;

// A part of the text, in UTF-16 units.
struct Range {
  int32_t begin, end;
};

std::string type_of(const json& description, const char* what) {
  if (!description.is_object() || !description.contains("type") || !description["type"].is_string()) {
    throw Error(std::string(what) + " has no type");
  }
  return description["type"].get<std::string>();
}

bool flag(const json& description, const char* name, bool otherwise) {
  if (!description.contains(name)) return otherwise;
  if (!description[name].is_boolean()) throw Error(std::string("tokenizer option ") + name + " is no boolean");
  return description[name].get<bool>();
}

void check_icu(UErrorCode code, const char* what) {
  if (U_FAILURE(code)) throw Error(std::string(what) + ": " + u_errorName(code));
}

// Calls take(range, matched) for the alternating unmatched and matched parts of `range`.
void split_by(const icu::RegexPattern& pattern, const icu::UnicodeString& text, Range range,
              const std::function<void(Range)>& take) {
  UErrorCode code = U_ZERO_ERROR;
  const std::unique_ptr<icu::RegexMatcher> matcher(pattern.matcher(text, code));
  check_icu(code, "regular expression");
  // Before region(), which it resets. No limit but memory: a run of 100,000 letters is one match.
  matcher->setStackLimit(0, code);
  // A piece is a text of its own: neither anchors nor look-around see its neighbours.
  matcher->region(range.begin, range.end, code).useTransparentBounds(false).useAnchoringBounds(true);
  int32_t at = range.begin;
  while (matcher->find(code) && U_SUCCESS(code)) {
    const Range match = {matcher->start(code), matcher->end(code)};
    if (match.begin > at) take({at, match.begin});
    if (match.end > match.begin) take(match);
    at = match.end;
  }
  check_icu(code, "regular expression");
  if (at < range.end) take({at, range.end});
}

void split_digits(bool individual, const icu::UnicodeString& text, Range range, const std::function<void(Range)>& take) {
  const auto is_number = [&](int32_t at) { return (U_GET_GC_MASK(text.char32At(at)) & U_GC_N_MASK) != 0; };
  int32_t at = range.begin;
  while (at < range.end) {
    const bool number = is_number(at);
    int32_t end = text.moveIndex32(at, 1);
    while (end < range.end && !(number && individual) && is_number(end) == number) end = text.moveIndex32(end, 1);
    take({at, end});
    at = end;
  }
}

using Step = std::function<void(const icu::UnicodeString&, Range, const std::function<void(Range)>&)>;

Step make_split(const json& description) {
  if (description.value("behavior", "") != "Isolated" || flag(description, "invert", false)) {
    throw Error("pre_tokenizer Split: only behavior Isolated without invert is known");
  }
  const json& given = description.contains("pattern") ? description["pattern"] : json();
  const bool regex = given.is_object() && given.contains("Regex"), literal = given.is_object() && given.contains("String");
  const json spelling = regex ? given["Regex"] : literal ? given["String"] : json();
  if (!spelling.is_string()) throw Error("pre_tokenizer Split: pattern is neither a Regex nor a String");
  const auto text = icu::UnicodeString::fromUTF8(spelling.get<std::string>());
  UErrorCode code = U_ZERO_ERROR;
  UParseError where;
  std::shared_ptr<const icu::RegexPattern> pattern(icu::RegexPattern::compile(text, regex ? 0 : UREGEX_LITERAL, where, code));
  check_icu(code, "pre_tokenizer Split: pattern");
  return [pattern](const icu::UnicodeString& whole, Range range, const std::function<void(Range)>& take) {
    split_by(*pattern, whole, range, take);
  };
}

void add_steps(const json& description, std::vector<Step>* steps) {
  const std::string type = type_of(description, "pre_tokenizer");
  if (type == "Sequence") {
    if (!description.contains("pretokenizers") || !description["pretokenizers"].is_array()) {
      throw Error("pre_tokenizer Sequence has no pretokenizers");
    }
    for (const json& part : description["pretokenizers"]) add_steps(part, steps);
  } else if (type == "Split") {
    steps->push_back(make_split(description));
  } else if (type == "Digits") {
    const bool individual = flag(description, "individual_digits", false);
    steps->push_back([individual](const icu::UnicodeString& whole, Range range, const std::function<void(Range)>& take) {
      split_digits(individual, whole, range, take);
    });
  } else if (type == "ByteLevel") {
    if (flag(description, "add_prefix_space", true) || flag(description, "use_regex", true)) {
      throw Error("pre_tokenizer ByteLevel: add_prefix_space and use_regex must be false");
    }
  } else {
    throw Error("pre_tokenizer " + type + " is unknown");
  }
}

}  // namespace

Normalizer::Normalizer(const json& description) {
  if (description.is_null()) return;
  const std::string type = type_of(description, "normalizer");
  if (type == "NFC") {
    nfc_ = true;
  } else if (type == "Sequence" && description.contains("normalizers") && description["normalizers"].is_array()) {
    for (const json& part : description["normalizers"]) nfc_ = Normalizer(part).nfc_ || nfc_;
  } else {
    throw Error("normalizer " + type + " is unknown");
  }
}

std::string Normalizer::operator()(std::string_view text) const {
  if (!nfc_) return std::string(text);
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(code);
  check_icu(code, "NFC");
  std::string out;
  const icu::UnicodeString normal =
      nfc->normalize(icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())}), code);
  check_icu(code, "NFC");
  return normal.toUTF8String(out);
}

struct Pretokenizer::Steps {
  std::vector<Step> steps;
};

Pretokenizer::Pretokenizer(const json& description) : steps_(std::make_unique<Steps>()) { add_steps(description, &steps_->steps); }
Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;

std::vector<std::string> Pretokenizer::operator()(std::string_view text) const {
  const auto whole = icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
  std::vector<Range> ranges = {{0, whole.length()}};
  for (const Step& step : steps_->steps) {
    std::vector<Range> parts;
    for (const Range range : ranges) step(whole, range, [&](Range part) { parts.push_back(part); });
    ranges = std::move(parts);
  }
  std::vector<std::string> pieces;
  for (const Range range : ranges) {
    if (range.begin == range.end) continue;
    std::string bytes;
    whole.tempSubStringBetween(range.begin, range.end).toUTF8String(bytes);
    pieces.push_back(to_byte_level(bytes));
  }
  return pieces;
}

}  // namespace ref
