// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "reference/core/error.h"
#include "reference/text/utf8.h"

namespace ref {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) throw Error("a stop text is empty");
    if (utf8_lossy(stop) != stop) throw Error("a stop text is no valid UTF-8");
  }
}

// Bytes of the longest end of held_ that a stop text begins with. Both are whole characters, so that no character is cut.
size_t StopMatcher::held_back() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > longest; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
    }
  }
  return longest;
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t first_end = std::string::npos, begin = 0;
  for (const std::string& stop : stops_) {
    const size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    const size_t end = found + stop.size();
    if (end < first_end || (end == first_end && found < begin)) {
      first_end = end;
      begin = found;
    }
  }
  stopped_ = first_end != std::string::npos;
  std::string shown = held_.substr(0, stopped_ ? begin : held_.size() - held_back());
  held_ = stopped_ ? std::string() : held_.substr(shown.size());
  return shown;
}

std::string StopMatcher::finish() {
  stopped_ = false;
  return std::exchange(held_, {});
}

}  // namespace ref
