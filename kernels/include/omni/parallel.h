/* SPDX-License-Identifier: Apache-2.0 */
/** @file parallel.h  The parallel_for that callers may inject, and the default fork-join pool. */
#ifndef OMNI_PARALLEL_H
#define OMNI_PARALLEL_H

#include <stdint.h>

#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One unit of work: called once for each index in [0, count), from any thread, in any order. Must not throw. */
typedef void (*omni_task)(void* task_context, int64_t index);

/**
 * A parallel_for. The library never creates threads through any other door. Results never depend on `threads`, on the order of
 * calls or on which thread runs an index.
 */
typedef struct omni_parallel {
  uint32_t size;    /**< sizeof(omni_parallel) */
  uint32_t threads; /**< most threads that parallel_for may use at once, >= 1; the library cuts about 4 blocks for each */
  void* context;    /**< passed back to parallel_for */
  /** Calls task(task_context, i) exactly once for every i in [0, count) and returns when all calls have returned. */
  void (*parallel_for)(void* context, int64_t count, omni_task task, void* task_context);
} omni_parallel;

/** The library's own fork-join pool (spin at most 50 us, then futex; see docs/threads.md). */
typedef struct omni_pool omni_pool;

/**
 * Creates a pool of `threads` threads, the caller of parallel_for included; 0 asks for the default of this machine
 * (affinity, cgroup quota and performance cores intersected). A larger count, up to 1024, cuts work finer, but no more than the
 * default ever run. One region runs at a time; a second caller, or a task that opens a region, runs it alone. In a forked child the
 * first region starts new threads. OMNI_ERR_RANGE above 1024; OMNI_ERR_OUT_OF_MEMORY when the threads cannot be started.
 */
OMNI_API omni_status omni_pool_create(uint32_t threads, omni_pool** pool);
/** Joins the threads. NULL is allowed. No region may be running. */
OMNI_API void omni_pool_destroy(omni_pool* pool);
/** The pool as a parallel_for; valid until the pool is destroyed. */
OMNI_API omni_status omni_pool_parallel(omni_pool* pool, omni_parallel* out);

/**
 * The process-wide pool that calls with a NULL `parallel` use; made on first use with omni_num_threads() threads. The result stays
 * valid for the process: omni_set_num_threads() replaces the pool behind it, and `threads` then tells the old count.
 */
OMNI_API omni_status omni_default_parallel(omni_parallel* out);
/**
 * Threads of the process-wide pool: omni_set_num_threads(), else OMNI_NUM_THREADS, else the machine's default.
 */
OMNI_API uint32_t omni_num_threads(void);
/** Sets the above. 0 restores the default. OMNI_ERR_STATE while a region runs. */
OMNI_API omni_status omni_set_num_threads(uint32_t threads);

#ifdef __cplusplus
}
#endif
#endif
