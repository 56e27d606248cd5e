// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte alphabet: every byte is written as one printable character, so that a vocabulary of text can hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace ref {

// Bytes to the alphabet: printable ASCII and Latin-1 stand for themselves, the other 68 bytes for U+0100 onwards.
std::string to_byte_level(std::string_view bytes);

// The inverse. A character outside the alphabet keeps its UTF-8 bytes and makes the result false, as does invalid UTF-8.
bool from_byte_level(std::string_view text, std::string* bytes);

}  // namespace ref
