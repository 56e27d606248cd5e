// SPDX-License-Identifier: Apache-2.0
#include "reference/text/utf8.h"

#include <cstdint>

namespace ref {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of a character by its first byte, and the range of the second, which excludes overlong forms, surrogates and what is above
// U+10FFFF. Length 0: no character starts so.
struct Lead {
  uint8_t length, second_min, second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {3, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80), static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {4, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80), static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

}  // namespace

Utf8Head utf8_head(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const Lead lead = lead_of(at(0));
  if (lead.length == 0) return {1, false, false, 0};
  if (lead.length == 1) return {1, true, false, at(0)};
  char32_t character = at(0) & (0x7FU >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {i, false, true, 0};
    const uint8_t min = i == 1 ? lead.second_min : 0x80, max = i == 1 ? lead.second_max : 0xBF;
    if (at(i) < min || at(i) > max) return {i, false, false, 0};
    character = character << 6 | (at(i) & 0x3FU);
  }
  return {lead.length, true, false, character};
}

std::string utf8_lossy(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Head head = utf8_head(bytes);
    text += head.valid ? bytes.substr(0, head.length) : kReplacement;
    bytes.remove_prefix(head.length);
  }
  return text;
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Head head = utf8_head(rest);
    if (head.incomplete) break;
    text += head.valid ? rest.substr(0, head.length) : kReplacement;
    rest.remove_prefix(head.length);
  }
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::finish() {
  std::string text = utf8_lossy(held_);
  held_.clear();
  return text;
}

void append_utf8(char32_t character, std::string* out) {
  const auto put = [&](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

}  // namespace ref
