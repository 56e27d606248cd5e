// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "bench/ops/op.h"
#include "bench/ops/tables.h"

namespace omnibench {
namespace {

std::vector<Op> make_ops() {
  std::vector<Op> ops = matrix_ops();
  for (const std::vector<Op>& more : {row_ops(), whole_ops()}) ops.insert(ops.end(), more.begin(), more.end());
  return ops;
}

}  // namespace

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops = make_ops();
  return ops;
}

const Op* find_op(const std::string& name) {
  const std::string wanted = name == "gemv" ? "w4a16" : name;
  for (const Op& op : all_ops()) {
    if (op.name == wanted) return &op;
  }
  return nullptr;
}

const Op& op_of(const Case& c) {
  const Op* op = find_op(c.op);
  if (op == nullptr) throw std::runtime_error(fmt::format("unknown operation {}", c.op));
  return *op;
}

std::optional<Shape> parse_shape(const Op& op, const std::string& text) {
  for (const Shape& s : op.shapes) {
    if (s.name == text) return s;
  }
  Shape shape;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1 || value > (int64_t{1} << 31)) return std::nullopt;
    shape.sizes.push_back(value);
    if (next == end) break;
    if (*next != 'x') return std::nullopt;
    at = next + 1;
  }
  if (op.most_rows > 0 && shape.sizes.size() == op.sizes.size() + 1) {
    shape.m = shape.sizes[0];
    shape.sizes.erase(shape.sizes.begin());
  }
  if (shape.sizes.size() != op.sizes.size()) return std::nullopt;
  shape.name = fmt::format("{}", fmt::join(shape.sizes, "x"));
  return shape;
}

std::string shapes_text(const Op& op) {
  std::string sizes;
  for (const std::string& size : op.sizes) {
    if (!sizes.empty()) sizes += 'x';
    for (const char c : size) sizes += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  std::string out;
  for (const Shape& shape : op.shapes) {
    if (shape.name.find_first_not_of("0123456789x") != std::string::npos) out += shape.name + ", ";
  }
  return out + "all, " + sizes + (op.most_rows > 0 ? " or Mx" + sizes : "");
}

}  // namespace omnibench
