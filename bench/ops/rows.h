// SPDX-License-Identifier: Apache-2.0
// What the operations on rows of activations share: one plan, outputs that must have the bits of the portable tier, and a reference
// in double precision that holds that tier, and peers, to a bound.
#ifndef OMNI_BENCH_OPS_ROWS_H
#define OMNI_BENCH_OPS_ROWS_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/generator.h"
#include "bench/ops/op.h"

namespace omnibench {

class RowsWorkload : public Workload {
 public:
  using Workload::Workload;
  Verification compare(const void* output, size_t bytes, bool f32, const std::string& how) override;

 protected:
  /// What an output element must be nearly, and how far from it a correct one may lie.
  struct Exact {
    double value = 0, bound = 0;
  };
  /// Elements of the output that have such a reference: the first `elements()` of the part, fp32 or bf16.
  [[nodiscard]] virtual int64_t elements() const = 0;
  [[nodiscard]] virtual bool output_f32() const { return false; }
  /// Element `index` of the output. `peer`: what another implementation, with bf16 between its steps, may be off by.
  [[nodiscard]] virtual Exact exact(int64_t index, bool peer) const = 0;
  /// At most so many elements are compared with the reference, spread over all.
  [[nodiscard]] virtual int64_t most_compared() const { return int64_t{1} << 16; }

  /// bf16 values in ±[2^-3, 2): the activations of every operation.
  void fill_activations(size_t part, int64_t rows, int64_t width, uint64_t salt) const;
  /// The same as fp32, with digits that bf16 lacks.
  void fill_activations_f32(size_t part, int64_t rows, int64_t width, uint64_t salt) const;

 private:
  void compare_bound(const void* output, bool f32, bool peer) const;
  const std::vector<uint8_t>& expected();

  std::vector<uint8_t> expected_;
};

/// The usual file of a worker: every part that is no output, under its name.
void write_inputs(const Workload& workload, const Workload::FileWriter& file);

inline double bf16_at(const void* data, int64_t index) { return bf16_to_float(static_cast<const uint16_t*>(data)[index]); }

/// Roundings to bf16 of a value of this size, 2^-8 of it each at most (8 bits of significand); 1e-30 for subnormals.
inline double bf16_bound(double value, double roundings) { return roundings * 0x1p-8 * std::abs(value) + 1e-30; }

}  // namespace omnibench
#endif
