// SPDX-License-Identifier: Apache-2.0
// The four prompt forms: rows of text and codec embeddings that the talker reads before it speaks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/qwen3_tts/config.h"

namespace ref::tts {

// Ids of the templates, whole: text "<|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n", and so on.
struct PromptText {
  std::vector<int32_t> text;
  std::vector<int32_t> instruct;   // empty: none
  std::vector<int32_t> reference;  // with frames: what they say
};

// Whose voice it is.
struct Voice {
  std::vector<float> speaker;  // x-vector of Base, talker width; empty: none
  std::string speaker_name;    // CustomVoice; empty: none
  std::vector<Frame> frames;   // of the reference, for a clone that continues it (ICL); empty: none
  std::string reference_text;  // with frames
};

struct PromptRequest {
  PromptText ids;
  std::string language = "auto";  // any case
  const Voice* voice = nullptr;   // nullptr: none
  bool streaming_text = true;     // text rows are added one a frame (D1, D3), else all stand in the prompt (D2, D4)
};

struct Prompt {
  std::vector<float> rows;      // [length][hidden]
  std::vector<float> trailing;  // [trailing_length][hidden]: one a frame
  int64_t length = 0, trailing_length = 0;
};

}  // namespace ref::tts
