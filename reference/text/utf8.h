// SPDX-License-Identifier: Apache-2.0
// UTF-8 of untrusted bytes: each maximal invalid prefix becomes one U+FFFD, as Unicode recommends and Rust's from_utf8_lossy does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ref {

// What stands at the start of `bytes`, which is not empty.
struct Utf8Head {
  size_t length;       // bytes of the character, or of the maximal invalid prefix
  bool valid;          // a whole character
  bool incomplete;     // invalid only because the bytes end: more could complete it
  char32_t character;  // when valid
};
Utf8Head utf8_head(std::string_view bytes);

// The text with every invalid part replaced.
std::string utf8_lossy(std::string_view bytes);

// Joins pieces of a byte stream into text without ever cutting a character: what could still become one is held back.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // what was held back, replaced; the stream is then as new

 private:
  std::string held_;
};

void append_utf8(char32_t character, std::string* out);

}  // namespace ref
