/* SPDX-License-Identifier: Apache-2.0 */
/* Pure loads: how fast bytes can reach the registers. Leaf functions, one file per ISA, chosen at run time. */
#ifndef OMNI_BENCH_ARMS_READ_LOOPS_H
#define OMNI_BENCH_ARMS_READ_LOOPS_H

#include <cstddef>
#include <cstdint>

namespace omnibench {

/// Loads every 64-byte line of [data, data + bytes) once, whole vectors, and folds what it loaded. `streams` (1, 2 or 4) parts are
/// read side by side; `prefetch` > 0 fetches that many bytes ahead. Loads may start up to 63 bytes before `data` (aligned down).
using ReadLoop = uint64_t (*)(const uint8_t* data, size_t bytes, int streams, int prefetch);

uint64_t read_portable(const uint8_t* data, size_t bytes, int streams, int prefetch);
uint64_t read_avx2(const uint8_t* data, size_t bytes, int streams, int prefetch);
uint64_t read_avx512(const uint8_t* data, size_t bytes, int streams, int prefetch);

}  // namespace omnibench
#endif
