/* SPDX-License-Identifier: Apache-2.0 */
/** @file gather.h  Rows of an embedding table by id, dequantised on the way: from packed weights and from plain arrays. */
#ifndef OMNI_GATHER_H
#define OMNI_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A question to the registry. */
typedef struct omni_gather_query {
  uint32_t size;     /**< sizeof(omni_gather_query) */
  uint16_t out_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t
      plain_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32: the table is row-major [n][k]; OMNI_DTYPE_NONE: `table` says what it is */
  omni_layout table;   /**< tg4, w8s, w16 or w32; of a plain table only n and k are looked at */
  float multiplier;    /**< finite; every value times this (an embedding scale). 0 means 1 */
  uint32_t reserved;   /**< 0 */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_gather_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call; `out` overlaps nothing. */
typedef struct omni_gather_args {
  uint32_t size;                 /**< sizeof(omni_gather_args) */
  uint16_t id_bytes;             /**< 4: ids are int32_t; 8: int64_t */
  uint16_t reserved;             /**< 0 */
  int64_t count;                 /**< ids; 0 writes nothing and needs no pointers */
  const void* ids;               /**< [count], each in [0, n), in any order and as often as one likes; aligned to id_bytes */
  const void* table;             /**< packed weights, 16-byte aligned, or the plain array, aligned to its element */
  size_t table_bytes;            /**< at least omni_packed_size, or ((n - 1) * ld_table + k) elements */
  int64_t ld_table;              /**< plain: >= k, 0 means k; not looked at for packed tables */
  const void* scales;            /**< scale array of tg4 and w8s, aligned to its element; else not looked at */
  size_t scales_bytes;           /**< at least omni_scales_size */
  void* out;                     /**< [count][k] of out_type, aligned to its element */
  int64_t ld_out;                /**< >= k; columns beyond k are never written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_gather_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_gather_select(const omni_gather_query* query, omni_plan** plan);

/**
 * out[i] = row ids[i]. In fp32, every operation one rounding: w = fma(q - 8, s, z) of tg4, q * s of w8s, the value itself of the
 * others; then w * multiplier; then bf16 by round to nearest even (subnormals kept), or fp32 as it is. Any NaN is 0x7FC0 or
 * 0x7FC00000. The same bits on every tier; with multiplier 1 those of omni_dequantize and omni_unpack_dense. A w16 table gives what
 * it stores, scrubbed or not.
 *
 * OMNI_ERR_RANGE names the first id outside of [0, n) and its place. On an error nothing is written. Never allocates; thread-safe.
 */
OMNI_API omni_status omni_gather_run(const omni_plan* plan, const omni_gather_args* args);

#ifdef __cplusplus
}
#endif
#endif
