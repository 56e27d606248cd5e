// SPDX-License-Identifier: Apache-2.0
// The rows of all_ops(), by kind.
#ifndef OMNI_BENCH_OPS_TABLES_H
#define OMNI_BENCH_OPS_TABLES_H

#include <vector>

#include "bench/ops/op.h"

namespace omnibench {

std::vector<Op> matrix_ops();  // linear layers, attention, convolution
std::vector<Op> row_ops();     // what works on rows of activations
std::vector<Op> whole_ops();   // whole matrices, and whole models in workers

}  // namespace omnibench
#endif
