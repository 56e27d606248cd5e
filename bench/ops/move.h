// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_MOVE_H
#define OMNI_BENCH_OPS_MOVE_H

#include "bench/ops/op.h"

namespace omnibench {

std::vector<Part> pack_parts(const Case& c);
std::unique_ptr<Workload> make_pack(const Case& c, const Pool& pool);

std::vector<Part> dequant_parts(const Case& c);
std::unique_ptr<Workload> make_dequant(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
