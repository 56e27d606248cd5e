/* SPDX-License-Identifier: Apache-2.0 */
/** @file layernorm.h  Layer normalisation of rows. */
#ifndef OMNI_LAYERNORM_H
#define OMNI_LAYERNORM_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A question to the registry. */
typedef struct omni_layernorm_query {
  uint32_t size;       /**< sizeof(omni_layernorm_query) */
  uint16_t x_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t y_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  int64_t n;           /**< elements of a row, 1 or more */
  float eps;           /**< added to the variance; finite, not negative */
  uint32_t reserved;   /**< 0 */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_layernorm_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_layernorm_args {
  uint32_t size;                 /**< sizeof(omni_layernorm_args) */
  uint32_t m;                    /**< rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][n] of x_type */
  int64_t ldx;                   /**< >= n; columns beyond n are never read */
  const float* weight;           /**< [n], or NULL: 1 */
  const float* bias;             /**< [n], or NULL: 0 */
  void* y;                       /**< [m][n] of y_type out; may be x itself where both have one type and one leading dimension,
                                      else overlaps nothing */
  int64_t ldy;                   /**< >= n; columns beyond n are never written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_layernorm_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_layernorm_select(const omni_layernorm_query* query, omni_plan** plan);

/**
 * mean = sum(x) / n; d = x - mean; r = 1 / sqrt(sum(d * d) / n + eps); y = fma(d * r, weight, bias) in fp32, rounded once when
 * stored (Ba, Kiros and Hinton, 2016). Both sums stand in 64 lanes (element i in lane i mod 64; the second by FMA) that a fixed
 * tree folds, as those of omni_rmsnorm_run(). The same bits on every tier. Never allocates; thread-safe; on an error nothing is
 * written.
 */
OMNI_API omni_status omni_layernorm_run(const omni_plan* plan, const omni_layernorm_args* args);

#ifdef __cplusplus
}
#endif
#endif
