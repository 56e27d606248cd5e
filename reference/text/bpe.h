// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding: a piece of text is split into its characters, then the pair whose merge comes first in the list is joined,
// leftmost first, until none is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ref {

class Bpe {
 public:
  using Vocabulary = std::unordered_map<std::string, int32_t>;
  using Merges = std::vector<std::pair<std::string, std::string>>;

  // Throws Error when a merge names a token that the vocabulary lacks. `unknown` stands for characters that are no token; without
  // it they vanish.
  Bpe(Vocabulary vocabulary, const Merges& merges, std::optional<int32_t> unknown, bool ignore_merges);

  // Appends the ids of one piece in the byte-level alphabet. O(n log n) for any piece. Thread-safe.
  void encode(std::string_view piece, std::vector<int32_t>* ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Merge {
    int32_t rank, id;
  };
  const Merge* find(int32_t left, int32_t right) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // by the two ids
  std::optional<int32_t> unknown_;
  bool ignore_merges_;
};

}  // namespace ref
