// SPDX-License-Identifier: Apache-2.0
// The weight shapes that programs know by name, and the reader of `--shape` values.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tools {

struct Shape {
  std::string_view name;
  int64_t n, k;  // output channels, inputs
};

// The linear layers of a 2048-wide decoder with a 6656-wide gated MLP: gate and up stacked, down, q, k and v stacked, o, and the
// output head.
inline constexpr Shape kShapes[] = {
    {"gate_up", 13312, 2048}, {"down", 2048, 6656}, {"q_k_v", 3072, 2048}, {"o", 2048, 2048}, {"head", 131072, 2048}};

// A name of the table, or "NxK" with 1 <= N, K < 2^31. nullopt for anything else. The result's name is a view of `text` for NxK.
inline std::optional<Shape> parse_shape(std::string_view text) {
  for (const Shape& shape : kShapes) {
    if (shape.name == text) return shape;
  }
  const size_t cross = text.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> int64_t {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0 && value < int64_t{1} << 31 ? value : 0;
  };
  const Shape shape{text, number(text.substr(0, cross)), number(text.substr(cross + 1))};
  if (shape.n == 0 || shape.k == 0) return std::nullopt;
  return shape;
}

}  // namespace tools
