// SPDX-License-Identifier: Apache-2.0
// What is measured: shapes, operations, and the bytes and operations that one call stands for.
#ifndef OMNI_BENCH_CASES_H
#define OMNI_BENCH_CASES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"

namespace omnibench {

struct Shape {
  std::string name;  ///< "gate_up", or "NxK" itself
  int64_t n = 0, k = 0;
  int64_t m = 0;      ///< > 0 only when the text was MxNxK
  uint64_t seed = 1;  ///< of the generated operands; the named shapes have their own
};

/// The projections of the model that the library is tuned for.
const std::vector<Shape>& known_shapes();
/// A known name, "NxK" or "MxNxK"; nothing for anything else.
std::optional<Shape> parse_shape(const std::string& text);

struct Case {
  std::string op;  ///< "gemv", "pack", "dequant"
  Shape shape;
  int64_t m = 1;  ///< 0 for pack and dequant
  uint32_t group = 128;
  omni_numerics numerics = OMNI_NUMERICS_GROUP;
  bool hot = false;
  uint32_t threads = 1;

  [[nodiscard]] omni_layout layout() const;  ///< throws when the library refuses it
  /// Stable name, e.g. "gemv/gate_up/13312x2048/m1/g128/group/cold/t2"; `compare` matches reports by it.
  [[nodiscard]] std::string id() const;
};

/// One call moves each operand once. GB is 1e9 bytes.
struct BytesModel {
  double codes = 0, scales = 0, x = 0, y = 0, source = 0, out = 0;
  [[nodiscard]] double total() const { return codes + scales + x + y + source + out; }
};
BytesModel bytes_model(const Case& c);
/// gemv: "codes + scales + x + y", and so on.
std::string bytes_model_text(const std::string& op);
/// 2 * M * N * K for gemv, 0 otherwise (moving nibbles is no floating-point work).
double flops(const Case& c);
/// Bytes of one copy of the operands that a cold case rotates through.
double rotated_bytes(const Case& c);

const char* to_text(omni_numerics numerics);

}  // namespace omnibench
#endif
