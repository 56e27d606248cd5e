// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/text.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"
#include "tools/common/mapped_file.h"

namespace ref::tts {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSplit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

// Lines "left right" behind an optional "#version" line; a merge may begin with #, too.
json read_merges(const fs::path& file) {
  json merges = json::array();
  try {
    const omni_files::MappedFile mapped = omni_files::MappedFile::open(file.string());
    const std::span<const std::byte> bytes = mapped.bytes();
    if (bytes.size() > kMostBytes) throw Error(file.string() + ": is " + std::to_string(bytes.size()) + " bytes, which is no list");
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (int64_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      const size_t space = line.find(' ');
      if (space == line.npos || space == 0 || space + 1 == line.size() || line.find(' ', space + 1) != line.npos) {
        throw Error(file.string() + ": line " + std::to_string(number) + " is no pair of tokens");
      }
      merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
    }
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
  return merges;
}

json read_added_tokens(const fs::path& file) {
  const json config = read_json_object(file, kMostBytes);
  if (!config.contains("added_tokens_decoder") || !config["added_tokens_decoder"].is_object()) {
    throw Error(file.string() + ": has no added_tokens_decoder");
  }
  json added = json::array();
  for (const auto& [id, token] : config["added_tokens_decoder"].items()) {
    if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != id.npos || !token.is_object() ||
        !token.contains("content") || !token["content"].is_string()) {
      throw Error(file.string() + ": added_tokens_decoder \"" + id.substr(0, 40) + "\" is no token");
    }
    added.push_back(token);
    added.back()["id"] = std::stoi(id);
  }
  return added;
}

json describe(const fs::path& directory) {
  json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", kSplit}}}, {"behavior", "Isolated"}, {"invert", false}};
  json description = {{"normalizer", {{"type", "NFC"}}},
                      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
                      {"decoder", bytes},
                      {"model", {{"type", "BPE"}}}};
  description["added_tokens"] = read_added_tokens(directory / "tokenizer_config.json");
  description["model"]["vocab"] = read_json_object(directory / "vocab.json", kMostBytes);
  description["model"]["merges"] = read_merges(directory / "merges.txt");
  return description;
}

// Without leading white space up to the last line break in it.
std::string_view without_leading_breaks(std::string_view text) {
  size_t keep = 0;
  for (int32_t at = 0; at < static_cast<int32_t>(text.size());) {
    UChar32 c;
    U8_NEXT(text.data(), at, static_cast<int32_t>(text.size()), c);
    if (c < 0 || u_isUWhiteSpace(c) == 0) break;
    if (c == '\n' || c == '\r') keep = static_cast<size_t>(at);
  }
  return text.substr(keep);
}

void append(std::vector<int32_t>* ids, const std::vector<int32_t>& more) { ids->insert(ids->end(), more.begin(), more.end()); }

}  // namespace

Tokenizer load_tokenizer(const fs::path& directory) {
  const json description = describe(directory);
  try {
    return Tokenizer(description);
  } catch (const json::exception& problem) {
    throw Error(directory.string() + ": tokenizer: " + problem.what());
  } catch (const Error& problem) {
    throw Error(directory.string() + ": " + problem.what());
  }
}

TextTemplates::TextTemplates(const Tokenizer& tokenizer, const Config& config, const std::string& name)
    : tokenizer_(tokenizer), im_start_(config.im_start), im_end_(config.im_end), assistant_(config.assistant) {
  const auto need = [&](const char* token, int32_t id, const char* key) {
    const std::vector<int32_t> found = tokenizer.encode(token);
    if (found == std::vector<int32_t>{id}) return;
    throw Error(name + ": \"" + key + "\" is " + std::to_string(id) + ", but the tokenizer has " +
                (found.size() == 1 ? "the id " + std::to_string(found[0]) : std::to_string(found.size()) + " ids") + " for " +
                token);
  };
  need("<|im_start|>", im_start_, "im_start_token_id");
  need("<|im_end|>", im_end_, "im_end_token_id");
  need("assistant", assistant_, "assistant_token_id");
  if (tokenizer.size() > config.talker.text_vocabulary) {
    throw Error(name + ": the tokenizer has ids up to " + std::to_string(tokenizer.size() - 1) + ", \"text_vocab_size\" is " +
                std::to_string(config.talker.text_vocabulary));
  }
  const std::vector<int32_t> newline = tokenizer.encode("\n");
  if (newline.size() != 1) throw Error(name + ": the tokenizer has " + std::to_string(newline.size()) + " ids for a line break");
  newline_ = newline[0];
}

// <|im_start|>role\n{text}<|im_end|>\n
std::vector<int32_t> TextTemplates::turn(const char* role, std::string_view text, Tokenizer::AddedTokens added) const {
  if (text.size() > kMostBytes) throw Error("a text of " + std::to_string(text.size()) + " bytes is too long");
  std::vector<int32_t> ids = {im_start_};
  append(&ids, tokenizer_.encode(std::string(role) + "\n" + std::string(text), added));
  append(&ids, {im_end_, newline_});
  return ids;
}

std::vector<int32_t> TextTemplates::text(std::string_view text, Tokenizer::AddedTokens added) const {
  std::vector<int32_t> ids = turn("assistant", without_leading_breaks(text), added);
  append(&ids, {im_start_, assistant_, newline_});
  return ids;
}

std::vector<int32_t> TextTemplates::reference(std::string_view text, Tokenizer::AddedTokens added) const {
  return turn("assistant", without_leading_breaks(text), added);
}

std::vector<int32_t> TextTemplates::instruct(std::string_view text, Tokenizer::AddedTokens added) const {
  return turn("user", text, added);
}

PromptText TextTemplates::all(std::string_view text, std::string_view reference, std::string_view instruct,
                              Tokenizer::AddedTokens added) const {
  PromptText ids;
  ids.text = this->text(text, added);
  if (!reference.empty()) ids.reference = this->reference(reference, added);
  if (!instruct.empty()) ids.instruct = this->instruct(instruct, added);
  return ids;
}

}  // namespace ref::tts
