// SPDX-License-Identifier: Apache-2.0
#include "bench/cases.h"

#include <fmt/format.h>

#include "bench/ops/op.h"

namespace omnibench {

std::string Case::id() const {
  const std::string sizes = fmt::format("{}", fmt::join(shape.sizes, "x"));
  std::string out = fmt::format("{}/{}", op, shape.name == sizes ? sizes : shape.name + "/" + sizes);
  if (m > 0) out += fmt::format("/m{}", m);
  if (group > 0) out += fmt::format("/g{}", group);
  if (!variant.empty()) out += "/" + variant;
  return out + fmt::format("/{}/t{}", hot ? "hot" : "cold", threads);
}

std::vector<Part> parts_of(const Case& c) { return op_of(c).parts(c); }

double moved_bytes(const Case& c) {
  double total = 0;
  for (const Part& part : parts_of(c)) total += part.moved_bytes();
  return total;
}

double operations_of(const Case& c) {
  const Op& op = op_of(c);
  return op.operations != nullptr ? op.operations(c) : 0;
}

double rotated_bytes(const Case& c) {
  double total = 0;
  for (const Part& part : parts_of(c)) total += part.rotates ? static_cast<double>(part.bytes) : 0;
  return total;
}

}  // namespace omnibench
