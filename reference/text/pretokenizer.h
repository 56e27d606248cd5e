// SPDX-License-Identifier: Apache-2.0
// The `normalizer` and `pre_tokenizer` of a tokenizer.json: text to pieces, each piece to be encoded alone.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ref {

// Null, NFC, or a Sequence of those. Throws Error naming any other kind.
class Normalizer {
 public:
  explicit Normalizer(const nlohmann::json& description);
  // Of valid UTF-8.
  std::string operator()(std::string_view text) const;

 private:
  bool nfc_ = false;
};

// Split by a regular expression (isolated), Digits, ByteLevel without its own regex, or a Sequence of those. Each splits the pieces
// of the one before; unmatched text stays a piece of its own. Throws Error naming any other kind or option.
class Pretokenizer {
 public:
  explicit Pretokenizer(const nlohmann::json& description);
  ~Pretokenizer();
  Pretokenizer(Pretokenizer&&) noexcept;

  // Pieces of valid UTF-8, in the byte-level alphabet. Thread-safe.
  std::vector<std::string> operator()(std::string_view text) const;

 private:
  struct Steps;
  std::unique_ptr<Steps> steps_;
};

}  // namespace ref
