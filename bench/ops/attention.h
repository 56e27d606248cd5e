// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_ATTENTION_H
#define OMNI_BENCH_OPS_ATTENTION_H

#include "bench/ops/op.h"

namespace omnibench {

/// Sizes: heads, kv_heads, head_dim, keys. The M rows stand at the last M positions; each sees the keys up to its own.
std::vector<Part> attention_parts(const Case& c);
double attention_operations(const Case& c);
std::unique_ptr<Workload> make_attention(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
