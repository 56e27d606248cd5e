// SPDX-License-Identifier: Apache-2.0
// What is measured: an operation, its sizes, and how it is asked for. What an operation is made of stands in bench/ops/op.h.
#ifndef OMNI_BENCH_CASES_H
#define OMNI_BENCH_CASES_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace omnibench {

struct Shape {
  std::string name;            ///< "gate_up", or the sizes themselves: "13312x2048"
  std::vector<int64_t> sizes;  ///< in the order of Op::sizes
  int64_t m = 0;               ///< > 0: rows that go with it, of a text that had one size more than the operation: MxNxK
  uint64_t seed = 1;           ///< of the generated operands; the named shapes of linear operations have their own
};

struct Case {
  std::string op;  ///< a name of the table in bench/ops/ops.cc
  Shape shape;
  int64_t m = 1;        ///< rows; 0 for operations that have none
  uint32_t group = 0;   ///< inputs that share a scale; 0 for operations without groups
  std::string variant;  ///< --class; "" for operations that have one form only
  bool hot = false;
  uint32_t threads = 1;

  [[nodiscard]] int64_t size(size_t index) const { return shape.sizes[index]; }
  [[nodiscard]] int64_t n() const { return shape.sizes[0]; }
  [[nodiscard]] int64_t k() const { return shape.sizes[1]; }
  /// Stable name, e.g. "w4a16/gate_up/13312x2048/m1/g128/group/cold/t2"; `compare` matches reports by it.
  [[nodiscard]] std::string id() const;
};

/// A piece of memory that a call takes part in. Every byte of it is moved once by one call, unless `moved` says otherwise.
struct Part {
  std::string name;      ///< in the bytes model of the report
  size_t bytes = 0;      ///< allocated
  bool rotates = false;  ///< a cold case takes another copy for each call
  double moved = -1;     ///< bytes of it that one call moves; negative: all
  [[nodiscard]] double moved_bytes() const { return moved < 0 ? static_cast<double>(bytes) : moved; }
};

/// One call moves each operand once. GB is 1e9 bytes.
std::vector<Part> parts_of(const Case& c);
double moved_bytes(const Case& c);
/// Arithmetic operations of one call, a multiply-add counts two; 0 where none are counted.
double operations_of(const Case& c);
/// Bytes of one copy of what a cold case rotates through.
double rotated_bytes(const Case& c);

}  // namespace omnibench
#endif
