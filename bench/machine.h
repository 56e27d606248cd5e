// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_MACHINE_H
#define OMNI_BENCH_MACHINE_H

#include <cstdint>
#include <nlohmann/json.hpp>

namespace omnibench {

/// What the library and the system say of this machine.
nlohmann::json machine_json();
/// Bytes that can be allocated without swapping: MemAvailable, capped by the memory limit of the cgroup.
uint64_t available_memory();
/// Last-level cache in bytes (32 MiB assumed when unknown) and all second-level caches together.
uint64_t last_level_cache();
uint64_t second_level_caches();

/// Processor seconds since boot, of all processors together.
struct ProcessorTime {
  double total = 0, busy = 0, stolen = 0;
  double own = 0;  ///< of this process and the children it has waited for
};
ProcessorTime processor_time();

}  // namespace omnibench
#endif
