// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_INTEGER_H
#define OMNI_BENCH_OPS_INTEGER_H

#include "bench/ops/linear.h"

namespace omnibench {

/// Integer weights: w4a8 (w4s, zero point 8), w8a8 and w8a16 (w8s).
std::vector<Part> integer_parts(const Case& c);
std::unique_ptr<Workload> make_integer(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
