// SPDX-License-Identifier: Apache-2.0
// A long text in pieces that a model speaks well: sentences, several together while they are short.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ref::speak {

struct SplitOptions {
  // Most letters of a piece; 0: the text is one piece. Weighed as in speech_weight.h, where a small letter counts 25, so that an
  // ideograph stands for about three.
  int64_t letters = 300;
  std::string language = "auto";  // of the model's: whose abbreviations end no sentence
};

struct SplitText {
  std::vector<std::string> pieces;  // valid UTF-8, each with something to speak, no blanks at its ends
  int64_t left_out = 0;             // characters between pieces that nobody could speak, blanks not counted
};

// Cuts behind sentences, as few cuts as the length allows and pieces as alike as they allow. A longer sentence is cut behind a
// clause, else where a line could break, else between characters as readers see them. Without anything to speak there are no
// pieces. Bytes that are no UTF-8 count as U+FFFD.
SplitText split_text(std::string_view text, const SplitOptions& options);

}  // namespace ref::speak
