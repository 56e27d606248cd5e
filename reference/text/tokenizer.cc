// SPDX-License-Identifier: Apache-2.0
#include "reference/text/tokenizer.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/text/byte_level.h"

namespace ref {
namespace {

using nlohmann::json;

// No vocabulary is larger; an id near 2^31 would cost gigabytes.
constexpr int64_t kMostTokens = int64_t{1} << 24;

const json& member(const json& object, const char* name, const char* where) {
  if (!object.is_object() || !object.contains(name)) throw Error(std::string(where) + " lacks \"" + name + "\"");
  return object[name];
}

json optional_member(const json& object, const char* name) { return object.contains(name) ? object[name] : json(); }

int32_t checked_id(const json& value, const std::string& token) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() >= kMostTokens) {
    throw Error("token \"" + token + "\" has the id " + value.dump() + ", which is none");
  }
  return value.get<int32_t>();
}

const json& bpe_model(const json& description) {
  const json& model = member(description, "model", "tokenizer");
  if (model.value("type", "BPE") != "BPE") throw Error("tokenizer model " + model["type"].dump() + " is not BPE");
  for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json given = optional_member(model, option);
    if (!given.is_null() && given != "")
      throw Error(std::string("tokenizer model: ") + option + " " + given.dump() + " is unknown");
  }
  for (const char* option : {"byte_fallback", "fuse_unk"}) {
    if (optional_member(model, option) == true) throw Error(std::string("tokenizer model: ") + option + " is unknown");
  }
  if (const json dropout = optional_member(model, "dropout"); !dropout.is_null() && dropout != 0) {
    throw Error("tokenizer model: dropout " + dropout.dump() + " is for training only");
  }
  return model;
}

Bpe make_bpe(const json& description) {
  const json& model = bpe_model(description);
  Bpe::Vocabulary vocabulary;
  const json& entries = member(model, "vocab", "tokenizer model");
  if (!entries.is_object()) throw Error("tokenizer model: vocab is no object");
  vocabulary.reserve(entries.size());
  for (const auto& [token, id] : entries.items()) vocabulary.emplace(token, checked_id(id, token));

  Bpe::Merges merges;
  const json& list = member(model, "merges", "tokenizer model");
  if (!list.is_array()) throw Error("tokenizer model: merges is no array");
  merges.reserve(list.size());
  for (const json& merge : list) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == text.npos) throw Error("tokenizer model: merge " + std::to_string(merges.size()) + " is no pair: " + merge.dump());
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }

  std::optional<int32_t> unknown;
  if (const json token = optional_member(model, "unk_token"); token.is_string()) {
    const auto found = vocabulary.find(token.get<std::string>());
    if (found == vocabulary.end()) throw Error("tokenizer model: unk_token " + token.dump() + " is not in the vocabulary");
    unknown = found->second;
  }
  return {std::move(vocabulary), merges, unknown, optional_member(model, "ignore_merges") == true};
}

void check_byte_level(const json& description, const char* part) {
  const json given = optional_member(description, part);
  if (given.is_null()) return;
  if (!given.is_object() || given.value("type", "") != "ByteLevel") {
    throw Error(std::string("tokenizer ") + part + " is not ByteLevel: " + given.dump().substr(0, 80));
  }
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(file.string() + ": cannot be opened");
  try {
    return Tokenizer(json::parse(stream));
  } catch (const json::exception& problem) {
    throw Error(file.string() + ": " + problem.what());
  } catch (const Error& problem) {
    throw Error(file.string() + ": " + problem.what());
  }
}

Tokenizer::Tokenizer(const json& description)
    : normalizer_(optional_member(description, "normalizer")),
      pretokenizer_(member(description, "pre_tokenizer", "tokenizer")),
      bpe_(make_bpe(description)) {
  check_byte_level(description, "decoder");
  check_byte_level(description, "post_processor");
  const auto place = [&](int32_t id) -> std::optional<std::string>& {
    if (tokens_.size() <= static_cast<size_t>(id)) tokens_.resize(static_cast<size_t>(id) + 1);
    return tokens_[static_cast<size_t>(id)];
  };
  for (const auto& [token, id] : bpe_.vocabulary()) {
    if (place(id)) throw Error("tokens \"" + *place(id) + "\" and \"" + token + "\" share the id " + std::to_string(id));
    place(id) = token;
  }
  const json added = optional_member(description, "added_tokens");
  for (const json& entry : added) {
    AddedToken token;
    token.content = member(entry, "content", "added token").get<std::string>();
    token.id = checked_id(member(entry, "id", "added token"), token.content);
    token.special = entry.value("special", false);
    token.normalized = entry.value("normalized", !token.special);
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (entry.value(option, false)) throw Error("added token \"" + token.content + "\": " + option + " is unknown");
    }
    if (token.content.empty()) continue;
    place(token.id) = token.content;
    added_text_[token.id] = token.content;
    if (token.special) special_.insert(token.id);
    added_.push_back(std::move(token));
  }
  std::ranges::stable_sort(added_, [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
  for (size_t i = 0; i < added_.size(); ++i) added_by_byte_[static_cast<uint8_t>(added_[i].content[0])].push_back(i);
}

std::optional<Tokenizer::Match> Tokenizer::find_added(std::string_view text, size_t from, bool normalized) const {
  for (size_t at = from; at < text.size(); ++at) {
    for (const size_t index : added_by_byte_[static_cast<uint8_t>(text[at])]) {
      const AddedToken& token = added_[index];
      if (token.normalized == normalized && text.substr(at).starts_with(token.content)) {
        return Match{at, at + token.content.size(), token.id};
      }
    }
  }
  return std::nullopt;
}

template <typename Text, typename Token>
void Tokenizer::split_added(std::string_view text, bool normalized, const Text& on_text, const Token& on_token) const {
  size_t at = 0;
  while (const std::optional<Match> match = find_added(text, at, normalized)) {
    if (match->begin > at) on_text(text.substr(at, match->begin - at));
    on_token(match->id);
    at = match->end;
  }
  if (at < text.size()) on_text(text.substr(at));
}

void Tokenizer::encode_plain(std::string_view normal, std::vector<int32_t>* ids) const {
  for (const std::string& piece : pretokenizer_(normal)) bpe_.encode(piece, ids);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  std::vector<int32_t> ids;
  const std::string valid = utf8_lossy(text);
  if (added == AddedTokens::kAsText) {
    encode_plain(normalizer_(valid), &ids);
    return ids;
  }
  const auto on_token = [&](int32_t id) { ids.push_back(id); };
  split_added(
      valid, false,
      [&](std::string_view part) {
        split_added(
            normalizer_(part), true, [&](std::string_view plain) { encode_plain(plain, &ids); }, on_token);
      },
      on_token);
  return ids;
}

std::string Tokenizer::bytes_of(int32_t id, bool skip_special) const {
  if (id < 0 || id >= size() || !tokens_[static_cast<size_t>(id)]) return {};
  if (skip_special && is_special(id)) return {};
  if (const auto found = added_text_.find(id); found != added_text_.end()) return found->second;
  std::string bytes;
  // A token with a character outside the alphabet stands for its own text, as in the ByteLevel decoder.
  if (!from_byte_level(*tokens_[static_cast<size_t>(id)], &bytes)) return *tokens_[static_cast<size_t>(id)];
  return bytes;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += bytes_of(id, skip_special);
  return utf8_lossy(bytes);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const AddedToken& added : added_) {
    if (added.content == token) return added.id;
  }
  const auto found = bpe_.vocabulary().find(std::string(token));
  if (found == bpe_.vocabulary().end()) return std::nullopt;
  return found->second;
}

}  // namespace ref
