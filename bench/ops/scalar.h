// SPDX-License-Identifier: Apache-2.0
// docs/numerics.md transcribed once more, element by element, for this program's own checks: nothing here is the library's code.
#ifndef OMNI_BENCH_OPS_SCALAR_H
#define OMNI_BENCH_OPS_SCALAR_H

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/generator.h"
#include "omni/linear.h"

namespace omnibench {

/// fp32 result of one output element of class group or torch.
float scalar_gemv(const Generator& weights, omni_numerics numerics, const uint16_t* x, int64_t channel);
/// bf16 of w = (q - 8) * s + z.
uint16_t scalar_dequant(const Generator& weights, int64_t channel, int64_t input);

/// Class group on weights without zeros, `weight(k)` an integer and `scale(g)` that of group g: W8A16.
float scalar_group(const uint16_t* x, int64_t k, int64_t group, const std::function<float(int64_t)>& weight,
                   const std::function<float(int64_t)>& scale);

/// A row quantised as in class exact.
struct QuantizedRow {
  std::vector<int8_t> codes;
  float scale = 0;
};
QuantizedRow scalar_quantize(const uint16_t* x, int64_t k);
/// Class exact: exact integer sums over blocks of `block` inputs, `weight(k)` with its zero subtracted.
float scalar_exact(const QuantizedRow& row, int64_t block, const std::function<int(int64_t)>& weight,
                   const std::function<float(int64_t)>& scale_at);

/// Dense weights: bf16 with bf16 in pairs, the odd input first; any other pair of types one ascending chain.
float scalar_dense(int64_t k, bool pairs, const std::function<float(int64_t)>& x, const std::function<float(int64_t)>& weight);

}  // namespace omnibench
#endif
