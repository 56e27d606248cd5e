// SPDX-License-Identifier: Apache-2.0
// Finds stop texts in a stream of text, across the borders of its pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ref {

// Stops where the first of the texts is complete (of several that end at the same place, the longest), whatever the pieces are.
// What could still become one is held back.
class StopMatcher {
 public:
  // Throws Error for an empty text, which would stop everything, and for invalid UTF-8, which no output ever holds.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that may be shown now: without the stop text, and nothing after it.
  std::string push(std::string_view text);
  // What was held back. The matcher is then as new.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  size_t held_back() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace ref
