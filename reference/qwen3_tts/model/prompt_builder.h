// SPDX-License-Identifier: Apache-2.0
// Prompts row by row: what stands on the text side of each row and what on the codec side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/qwen3_tts/model/frame_tables.h"
#include "reference/qwen3_tts/model/prompt.h"
#include "reference/qwen3_tts/model/text_projection.h"

namespace ref::tts {

class PromptBuilder {
 public:
  // All are borrowed. Projects the three rows that stand for no text.
  PromptBuilder(const Config& config, const TextProjection& text, const FrameTables& codec);

  // Throws Error as Talker::prompt() does.
  Prompt build(const PromptRequest& request) const;
  std::span<const float> pad_row() const { return row(special_, 0); }

 private:
  struct Parts;  // the ids of a request by what they are for
  using Rows = std::vector<float>;

  std::span<const float> row(const Rows& rows, int64_t index) const;
  std::span<const float> bos_row() const { return row(special_, 1); }
  std::span<const float> eos_row() const { return row(special_, 2); }

  Parts take_apart(const PromptRequest& request) const;
  std::vector<int32_t> tags(const PromptRequest& request) const;
  void check_voice(const Voice& voice) const;
  int32_t speaker_id(const std::string& name) const;

  void add(Rows* rows, std::span<const float> text, std::span<const float> codec) const;
  void add(Rows* rows, std::span<const float> text, int32_t codec) const;
  void add_voice(Rows* rows, const PromptRequest& request) const;
  void add_plain(const Rows& text, bool streaming, Prompt* prompt) const;
  void add_clone(const Rows& text, const std::vector<Frame>& frames, bool streaming, Prompt* prompt) const;

  const Config& config_;
  const TextProjection& text_;
  const FrameTables& codec_;
  int64_t hidden_;
  Rows special_;  // PAD, BOS, EOS
};

}  // namespace ref::tts
