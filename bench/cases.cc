// SPDX-License-Identifier: Apache-2.0
#include "bench/cases.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace omnibench {

const std::vector<Shape>& known_shapes() {
  static const std::vector<Shape> shapes = {{"gate_up", 13312, 2048, 0, 103},
                                            {"down", 2048, 6656, 0, 104},
                                            {"q_k_v", 3072, 2048, 0, 102},
                                            {"o", 2048, 2048, 0, 101},
                                            {"head", 131072, 2048, 0, 105}};
  return shapes;
}

std::optional<Shape> parse_shape(const std::string& text) {
  for (const Shape& s : known_shapes()) {
    if (s.name == text) return s;
  }
  std::vector<int64_t> sizes;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1 || value > (int64_t{1} << 31)) return std::nullopt;
    sizes.push_back(value);
    if (next == end) break;
    if (*next != 'x') return std::nullopt;
    at = next + 1;
  }
  if (sizes.size() == 2) return Shape{text, sizes[0], sizes[1], 0, 1};
  if (sizes.size() == 3) return Shape{fmt::format("{}x{}", sizes[1], sizes[2]), sizes[1], sizes[2], sizes[0], 1};
  return std::nullopt;
}

omni_layout Case::layout() const {
  omni_layout out{};
  out.size = sizeof out;
  const omni_status status = omni_layout_init(&out, OMNI_FORMAT_TG4, shape.n, shape.k, group, OMNI_DTYPE_BF16);
  if (status != OMNI_OK) throw std::runtime_error(fmt::format("{}: {}", omni_status_name(status), omni_last_error()));
  return out;
}

std::string Case::id() const {
  const std::string size = fmt::format("{}x{}", shape.n, shape.k);
  const std::string name = shape.name == size ? size : shape.name + "/" + size;
  const char* cache = hot ? "hot" : "cold";
  if (op != "gemv") return fmt::format("{}/{}/g{}/{}/t{}", op, name, group, cache, threads);
  return fmt::format("{}/{}/m{}/g{}/{}/{}/t{}", op, name, m, group, to_text(numerics), cache, threads);
}

BytesModel bytes_model(const Case& c) {
  const omni_layout layout = c.layout();
  size_t codes = 0;
  size_t scales = 0;
  if (omni_packed_size(&layout, &codes) != OMNI_OK || omni_scales_size(&layout, &scales) != OMNI_OK) {
    throw std::runtime_error(omni_last_error());
  }
  const auto n = static_cast<double>(c.shape.n);
  const auto k = static_cast<double>(c.shape.k);
  BytesModel bytes;
  bytes.codes = static_cast<double>(codes);
  if (c.op == "gemv") {
    bytes.scales = static_cast<double>(scales);
    bytes.x = static_cast<double>(c.m) * k * 2;
    bytes.y = static_cast<double>(c.m) * n * 2;
  } else if (c.op == "pack") {
    bytes.source = n * k;
  } else {
    bytes.scales = static_cast<double>(scales);
    bytes.out = n * k * 2;
  }
  return bytes;
}

std::string bytes_model_text(const std::string& op) {
  if (op == "gemv") return "codes + scales (and zeros) + x (bf16) + y (bf16), each once";
  if (op == "pack") return "source codes (one byte each) + packed codes, each once";
  return "codes + scales (and zeros) + output (bf16), each once";
}

double flops(const Case& c) {
  if (c.op != "gemv") return 0;
  return 2.0 * static_cast<double>(c.m) * static_cast<double>(c.shape.n) * static_cast<double>(c.shape.k);
}

double rotated_bytes(const Case& c) {
  const BytesModel bytes = bytes_model(c);
  return bytes.codes + bytes.scales + bytes.source + bytes.out;
}

const char* to_text(omni_numerics numerics) { return numerics == OMNI_NUMERICS_TORCH ? "torch" : "group"; }

}  // namespace omnibench
