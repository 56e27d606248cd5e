// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_W4A16_H
#define OMNI_BENCH_OPS_W4A16_H

#include "bench/generator.h"
#include "bench/ops/linear.h"

namespace omnibench {

std::vector<Part> w4a16_parts(const Case& c);
std::unique_ptr<Workload> make_w4a16(const Case& c, const Pool& pool);

/// Codes of a whole matrix, [N][K], made on the pool.
void fill_codes(const Generator& generator, const Pool& pool, uint8_t* codes);
/// The same, packed as tg4.
void pack_tg4(const Generator& generator, const Pool& pool, uint8_t* packed, size_t packed_bytes);

}  // namespace omnibench
#endif
