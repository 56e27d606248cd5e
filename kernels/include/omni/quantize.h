/* SPDX-License-Identifier: Apache-2.0 */
/** @file quantize.h  Rows to s8 with one scale each: the activations of class exact (W4A8, W8A8). */
#ifndef OMNI_QUANTIZE_H
#define OMNI_QUANTIZE_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A question to the registry. */
typedef struct omni_quantize_query {
  uint32_t size;       /**< sizeof(omni_quantize_query) */
  uint16_t x_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t reserved;   /**< 0 */
  int64_t k;           /**< elements of a row, >= 0 */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_quantize_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call; outputs overlap nothing. */
typedef struct omni_quantize_args {
  uint32_t size;                 /**< sizeof(omni_quantize_args) */
  uint32_t m;                    /**< rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][k] of x_type, aligned to its element */
  int64_t ldx;                   /**< >= k; columns beyond k are never read */
  int8_t* codes;                 /**< [m][k] out; what OMNI_DTYPE_S8 rows of omni_linear_args.x are */
  int64_t ld_codes;              /**< >= k; columns beyond k are never written */
  float* scales;                 /**< [m] out, 4-byte aligned; what omni_linear_args.x_scales is */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_quantize_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_quantize_select(const omni_quantize_query* query, omni_plan** plan);

/**
 * Per row, in fp32: amax = max(max|x|, 1e-7); scale = amax / 127; code = rint(x * (127 / amax)), ties to even. Codes are in
 * -127..127; a row of zeros has scale 1e-7 / 127 and codes 0. A row with a NaN or an infinity gets scale NaN and codes 0, so that a
 * product with it is NaN. The bits of vLLM's int4_scaled_mm_cpu, equal on every tier. Never allocates; thread-safe; on an error
 * nothing is written.
 */
OMNI_API omni_status omni_quantize_run(const omni_plan* plan, const omni_quantize_args* args);

#ifdef __cplusplus
}
#endif
#endif
