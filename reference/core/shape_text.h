// SPDX-License-Identifier: Apache-2.0
// A shape as error lines show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ref {

// "[2048, 6656]".
inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace ref
