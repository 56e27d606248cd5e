// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_DENSE_H
#define OMNI_BENCH_OPS_DENSE_H

#include "bench/ops/linear.h"

namespace omnibench {

/// bf16 and fp32 weights: w16, w32.
std::vector<Part> dense_parts(const Case& c);
std::unique_ptr<Workload> make_dense(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
