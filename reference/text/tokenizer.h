// SPDX-License-Identifier: Apache-2.0
// The byte-level BPE tokenizer of a Hugging Face tokenizer.json.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reference/text/bpe.h"
#include "reference/text/pretokenizer.h"
#include "reference/text/utf8.h"

namespace ref {

struct AddedToken {
  int32_t id;
  std::string content;
  bool special;
  bool normalized;  // looked for in the normalised text, not in the text as given
};

class Tokenizer {
 public:
  // Reads a tokenizer.json. Throws Error naming the file and what is wrong or unknown in it.
  static Tokenizer load(const std::filesystem::path& file);
  explicit Tokenizer(const nlohmann::json& description);

  enum class AddedTokens : uint8_t { kMatch, kAsText };
  // Ids of the text. Invalid UTF-8 counts as U+FFFD. With kAsText the spelling of an added token is ordinary text, as text from a
  // user must be. Adds no token of its own. Thread-safe.
  std::vector<int32_t> encode(std::string_view text, AddedTokens added = AddedTokens::kMatch) const;

  // Text of the ids; ids without a token are skipped. Invalid UTF-8 becomes U+FFFD.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const;

  // The bytes that an id adds to the stream of decode(): part of a character, perhaps.
  std::string bytes_of(int32_t id, bool skip_special) const;

  // Pieces of the normalised text before BPE, in the byte-level alphabet; added tokens are ordinary text. For tests.
  std::vector<std::string> pieces(std::string_view text) const { return pretokenizer_(normalizer_(utf8_lossy(text))); }

  // One past the largest id.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  std::optional<int32_t> id_of(std::string_view token) const;
  bool is_special(int32_t id) const { return special_.contains(id); }

 private:
  struct Match {
    size_t begin, end;
    int32_t id;
  };
  // The first added token of the wanted kind in `text` from `from` on, the longest where several begin.
  std::optional<Match> find_added(std::string_view text, size_t from, bool normalized) const;
  template <typename Text, typename Token>
  void split_added(std::string_view text, bool normalized, const Text& on_text, const Token& on_token) const;
  void encode_plain(std::string_view normal, std::vector<int32_t>* ids) const;

  Normalizer normalizer_;
  Pretokenizer pretokenizer_;
  Bpe bpe_;
  std::vector<AddedToken> added_;                       // longest first, so that the longest of a place wins
  std::array<std::vector<size_t>, 256> added_by_byte_;  // indices of added_ by the first byte
  std::unordered_map<int32_t, std::string> added_text_;
  std::unordered_set<int32_t> special_;
  std::vector<std::optional<std::string>> tokens_;  // by id, in the byte-level alphabet
};

// Decodes a growing sequence of ids without ever cutting a character.
class StreamingDecoder {
 public:
  StreamingDecoder(const Tokenizer& tokenizer, bool skip_special) : tokenizer_(tokenizer), skip_special_(skip_special) {}
  std::string push(int32_t id) { return stream_.push(tokenizer_.bytes_of(id, skip_special_)); }
  std::string finish() { return stream_.finish(); }

 private:
  const Tokenizer& tokenizer_;
  Utf8Stream stream_;
  bool skip_special_;
};

}  // namespace ref
