// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/prompt_builder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

// Ids of the templates around the text: "<|im_start|>assistant\n" before it, "<|im_end|>\n" and "<|im_start|>assistant\n" behind.
constexpr size_t kRole = 3, kTurnEnd = 2, kTextEnd = 5;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

template <typename Map>
std::string names_of(const Map& map, std::string list) {
  for (const auto& [name, id] : map) list += (list.empty() ? "" : ", ") + name;
  return list;
}

void append(std::vector<float>* rows, std::span<const float> more) { rows->insert(rows->end(), more.begin(), more.end()); }

}  // namespace

struct PromptBuilder::Parts {
  std::span<const int32_t> instruct, role, reference, text;
};

PromptBuilder::PromptBuilder(const Config& config, const TextProjection& text, const FrameTables& codec)
    : config_(config), text_(text), codec_(codec), hidden_(config.talker.stack.hidden) {
  const std::array<int32_t, 3> ids = {config.tts_pad, config.tts_bos, config.tts_eos};
  special_ = text_(ids);
}

std::span<const float> PromptBuilder::row(const Rows& rows, int64_t index) const {
  return {rows.data() + index * hidden_, static_cast<size_t>(hidden_)};
}

PromptBuilder::Parts PromptBuilder::take_apart(const PromptRequest& request) const {
  const PromptText& ids = request.ids;
  const auto begins = [&](const std::vector<int32_t>& turn) { return turn[0] == config_.im_start && turn[1] == config_.assistant; };
  if (ids.text.size() < kRole + kTextEnd || !begins(ids.text) || ids.text[ids.text.size() - kTextEnd] != config_.im_end) {
    throw Error("the ids of the text are not those of its template");
  }
  Parts parts;
  const std::span<const int32_t> text = ids.text;
  parts.role = text.first(kRole);
  parts.text = text.subspan(kRole, text.size() - kRole - kTextEnd);
  if (parts.text.empty()) throw Error("there is no text to speak");
  if (config_.takes_instruct()) parts.instruct = ids.instruct;
  if (request.voice == nullptr || request.voice->frames.empty()) return parts;
  if (ids.reference.size() < kRole + kTurnEnd || !begins(ids.reference)) {
    throw Error("a voice with reference frames needs the text that they speak");
  }
  const std::span<const int32_t> reference = ids.reference;
  parts.reference = reference.subspan(kRole, reference.size() - kRole - kTurnEnd);
  return parts;
}

void PromptBuilder::check_voice(const Voice& voice) const {
  const bool base = config_.type == ModelType::kBase;
  if (!base && !voice.speaker.empty()) throw Error("this model takes no voice of a reference; only a base model does");
  // A voice design has no speaker to name, so that what it said first is how it goes on with the same voice.
  if (config_.type == ModelType::kCustomVoice && !voice.frames.empty()) {
    throw Error("this model continues no reference frames; its voices have names");
  }
  if (voice.speaker.empty()) return;
  if (static_cast<int64_t>(voice.speaker.size()) != hidden_) {
    throw Error("a voice of " + std::to_string(voice.speaker.size()) + " values does not fit this model, whose voices have " +
                std::to_string(hidden_));
  }
  for (const float value : voice.speaker) {
    if (!std::isfinite(value)) throw Error("a value of the voice is not finite");
  }
}

int32_t PromptBuilder::speaker_id(const std::string& name) const {
  const auto& speakers = config_.talker.speakers;
  if (const auto found = speakers.find(lower(name)); found != speakers.end()) return found->second;
  if (speakers.empty()) throw Error("speaker \"" + name + "\": this model has no speakers by name");
  throw Error("speaker \"" + name + "\" is unknown; there are " + names_of(speakers, ""));
}

// The language, which the dialect of a speaker replaces where the text may be Chinese, between the ids that say how it is known.
std::vector<int32_t> PromptBuilder::tags(const PromptRequest& request) const {
  const TalkerConfig& talker = config_.talker;
  std::string language = lower(request.language);
  if (request.voice != nullptr && (language == "auto" || language == "chinese")) {
    const auto dialect = talker.dialects.find(lower(request.voice->speaker_name));
    if (dialect != talker.dialects.end()) language = dialect->second;
  }
  if (language == "auto") return {talker.nothink, talker.think_bos, talker.think_eos};
  const auto found = talker.languages.find(language);
  if (found == talker.languages.end()) {
    throw Error("language \"" + request.language + "\" is unknown; there are " + names_of(talker.languages, "auto"));
  }
  return {talker.think, talker.think_bos, found->second, talker.think_eos};
}

void PromptBuilder::add(Rows* rows, std::span<const float> text, std::span<const float> codec) const {
  const size_t at = rows->size();
  append(rows, text);
  for (size_t i = 0; i < codec.size(); ++i) (*rows)[at + i] += codec[i];
}

void PromptBuilder::add(Rows* rows, std::span<const float> text, int32_t codec) const {
  Rows row(static_cast<size_t>(hidden_));
  codec_.codec(codec, row.data());
  add(rows, text, row);
}

// Tags, speaker and codec pad; only the last of them has BOS on the text side.
void PromptBuilder::add_voice(Rows* rows, const PromptRequest& request) const {
  for (const int32_t tag : tags(request)) add(rows, pad_row(), tag);
  if (request.voice != nullptr) {
    check_voice(*request.voice);
    const std::string& name = request.voice->speaker_name;
    if (!name.empty()) add(rows, pad_row(), speaker_id(name));
    if (!request.voice->speaker.empty()) add(rows, pad_row(), request.voice->speaker);
  }
  add(rows, bos_row(), config_.talker.pad);
}

// `text`: rows of the text, then EOS.
void PromptBuilder::add_plain(const Rows& text, bool streaming, Prompt* prompt) const {
  const int64_t length = static_cast<int64_t>(text.size()) / hidden_;
  const TalkerConfig& talker = config_.talker;
  if (streaming) {
    add(&prompt->rows, row(text, 0), talker.bos);
    append(&prompt->trailing, std::span(text).subspan(static_cast<size_t>(hidden_)));
    return;
  }
  for (int64_t i = 0; i < length; ++i) add(&prompt->rows, row(text, i), talker.pad);
  add(&prompt->rows, pad_row(), talker.bos);
  append(&prompt->trailing, pad_row());
}

// `text`: rows of the reference's text, of the text, then EOS.
void PromptBuilder::add_clone(const Rows& text, const std::vector<Frame>& frames, bool streaming, Prompt* prompt) const {
  const int64_t spoken = static_cast<int64_t>(frames.size()) + 1, length = static_cast<int64_t>(text.size()) / hidden_;
  Rows codec(static_cast<size_t>(spoken * hidden_));
  codec_.codec(config_.talker.bos, codec.data());
  for (int64_t i = 1; i < spoken; ++i) codec_.frame(frames[static_cast<size_t>(i - 1)], codec.data() + i * hidden_);
  if (!streaming) {
    for (int64_t i = 0; i < length; ++i) add(&prompt->rows, row(text, i), config_.talker.pad);
    for (int64_t i = 0; i < spoken; ++i) add(&prompt->rows, pad_row(), row(codec, i));
    append(&prompt->trailing, pad_row());
    return;
  }
  for (int64_t i = 0; i < spoken; ++i) add(&prompt->rows, i < length ? row(text, i) : pad_row(), row(codec, i));
  if (length > spoken) {
    append(&prompt->trailing, std::span(text).subspan(static_cast<size_t>(spoken * hidden_)));
  } else {
    append(&prompt->trailing, pad_row());
  }
}

Prompt PromptBuilder::build(const PromptRequest& request) const {
  const Parts parts = take_apart(request);
  // One projection for all that has text.
  std::vector<int32_t> ids;
  for (const std::span<const int32_t> each : {parts.instruct, parts.role, parts.reference, parts.text}) {
    ids.insert(ids.end(), each.begin(), each.end());
  }
  const Rows projected = text_(ids);
  const size_t opening = (parts.instruct.size() + parts.role.size()) * static_cast<size_t>(hidden_);
  Prompt prompt;
  prompt.rows.assign(projected.begin(), projected.begin() + static_cast<std::ptrdiff_t>(opening));
  add_voice(&prompt.rows, request);
  Rows text(projected.begin() + static_cast<std::ptrdiff_t>(opening), projected.end());
  append(&text, eos_row());
  if (request.voice != nullptr && !request.voice->frames.empty()) {
    add_clone(text, request.voice->frames, request.streaming_text, &prompt);
  } else {
    add_plain(text, request.streaming_text, &prompt);
  }
  prompt.length = static_cast<int64_t>(prompt.rows.size()) / hidden_;
  prompt.trailing_length = static_cast<int64_t>(prompt.trailing.size()) / hidden_;
  return prompt;
}

}  // namespace ref::tts
