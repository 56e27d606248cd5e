// SPDX-License-Identifier: Apache-2.0
#include "reference/text/byte_level.h"

#include <array>
#include <cstdint>

#include "reference/text/utf8.h"

namespace ref {
namespace {

constexpr bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) alphabet[byte] = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
  return alphabet;
}

constexpr std::array<char32_t, 256> alphabet = make_alphabet();
constexpr int kCharacters = 0x100 + 68;

constexpr std::array<int16_t, kCharacters> make_inverse() {
  std::array<int16_t, kCharacters> inverse{};
  for (int16_t& entry : inverse) entry = -1;
  for (int byte = 0; byte < 256; ++byte) inverse[alphabet[byte]] = static_cast<int16_t>(byte);
  return inverse;
}

constexpr std::array<int16_t, kCharacters> inverse = make_inverse();

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 2);
  for (const char byte : bytes) append_utf8(alphabet[static_cast<uint8_t>(byte)], &text);
  return text;
}

bool from_byte_level(std::string_view text, std::string* bytes) {
  bool all = true;
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    const bool known = head.valid && head.character < kCharacters && inverse[head.character] >= 0;
    if (known) {
      bytes->push_back(static_cast<char>(inverse[head.character]));
    } else {
      bytes->append(text.substr(0, head.length));
      all = false;
    }
    text.remove_prefix(head.length);
  }
  return all;
}

}  // namespace ref
