// SPDX-License-Identifier: Apache-2.0
// The text side: the tokenizer of a model directory, and the templates that text is spoken in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/prompt.h"
#include "reference/text/tokenizer.h"

namespace ref::tts {

// From vocab.json, merges.txt and tokenizer_config.json: these models have no tokenizer.json. The split expression is Qwen2's,
// whatever the config says of its version (a loader that takes Mistral's for a local directory cuts "iPhone" elsewhere). Throws
// Error naming the file that is absent or wrong.
Tokenizer load_tokenizer(const std::filesystem::path& directory);

// Ids of the templates:
//
//     text       <|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n
//     reference  <|im_start|>assistant\n{text}<|im_end|>\n
//     instruct   <|im_start|>user\n{text}<|im_end|>\n
//
// With AddedTokens::kAsText, the way for a user's words, the spelling of an added token is spoken, not obeyed; kMatch is what the
// reference implementation does. Of text and reference, whose ids are cut out of the template again, leading white space up to the
// last line break is dropped: it would become one token with the template's line break, and text would be lost with it.
class TextTemplates {
 public:
  // Throws Error unless the tokenizer has the template's tokens, each as one id, where the config has them.
  TextTemplates(const Tokenizer& tokenizer, const Config& config, const std::string& name);

  std::vector<int32_t> text(std::string_view text, Tokenizer::AddedTokens added) const;
  std::vector<int32_t> reference(std::string_view text, Tokenizer::AddedTokens added) const;
  std::vector<int32_t> instruct(std::string_view text, Tokenizer::AddedTokens added) const;
  // All of them; an empty reference or instruction has no ids.
  PromptText all(std::string_view text, std::string_view reference, std::string_view instruct,
                 Tokenizer::AddedTokens added = Tokenizer::AddedTokens::kAsText) const;

 private:
  std::vector<int32_t> turn(const char* role, std::string_view text, Tokenizer::AddedTokens added) const;

  const Tokenizer& tokenizer_;
  int32_t im_start_, im_end_, assistant_, newline_;
};

}  // namespace ref::tts
