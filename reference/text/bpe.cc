// SPDX-License-Identifier: Apache-2.0
#include "reference/text/bpe.h"

#include <queue>

#include "reference/core/error.h"
#include "reference/text/utf8.h"

namespace ref {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A symbol of the piece in a doubly linked list; joined ones stay behind with id -1.
struct Symbol {
  int32_t id;
  int32_t before, after;  // -1 at the ends
};

struct Candidate {
  int32_t rank;
  int32_t left;                   // index of the left symbol
  int32_t id, left_id, right_id;  // what the pair was when it was found: it is stale when either changed

  bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, std::optional<int32_t> unknown, bool ignore_merges)
    : vocabulary_(std::move(vocabulary)), unknown_(unknown), ignore_merges_(ignore_merges) {
  const auto id_of = [&](const std::string& token, size_t rank) {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) {
      throw Error("merge " + std::to_string(rank) + " needs the token \"" + token + "\", which the vocabulary lacks");
    }
    return found->second;
  };
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const uint64_t key = key_of(id_of(left, rank), id_of(right, rank));
    merges_.insert_or_assign(key, Merge{static_cast<int32_t>(rank), id_of(left + right, rank)});
  }
}

const Bpe::Merge* Bpe::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>* ids) const {
  if (ignore_merges_) {
    if (const auto whole = vocabulary_.find(std::string(piece)); whole != vocabulary_.end()) {
      ids->push_back(whole->second);
      return;
    }
  }
  std::vector<Symbol> symbols;
  while (!piece.empty()) {
    const size_t length = utf8_head(piece).length;
    const auto found = vocabulary_.find(std::string(piece.substr(0, length)));
    piece.remove_prefix(length);
    if (found == vocabulary_.end() && !unknown_) continue;
    const auto index = static_cast<int32_t>(symbols.size());
    symbols.push_back({found == vocabulary_.end() ? *unknown_ : found->second, index - 1, index + 1});
  }
  if (symbols.empty()) return;
  symbols.back().after = -1;

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int32_t left) {
    if (left < 0 || symbols[left].after < 0) return;
    const int32_t left_id = symbols[left].id, right_id = symbols[symbols[left].after].id;
    if (const Merge* merge = find(left_id, right_id)) queue.push({merge->rank, left, merge->id, left_id, right_id});
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.id != best.left_id || left.after < 0 || symbols[left.after].id != best.right_id) continue;
    Symbol& right = symbols[left.after];
    left.id = best.id;
    right.id = -1;
    left.after = right.after;
    if (left.after >= 0) symbols[left.after].before = best.left;
    consider(left.before);
    consider(best.left);
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].after) ids->push_back(symbols[i].id);
}

}  // namespace ref
