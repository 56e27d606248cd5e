// SPDX-License-Identifier: Apache-2.0
// Waits until the threads of the last arm rest. OpenMP runtimes spin for milliseconds after a region and would take a core from the
// next arm.
#ifndef OMNI_BENCH_PARKING_H
#define OMNI_BENCH_PARKING_H

#include <sys/types.h>

#include <vector>

namespace omnibench {

/**
 * Polls the threads of this process (the caller excepted) and of `others` with their children until none is running and none has
 * used processor time between two looks 0.3 ms apart, for at most `limit_ms`. True when they rest.
 */
bool wait_until_parked(const std::vector<pid_t>& others, int limit_ms = 1000);

}  // namespace omnibench
#endif
