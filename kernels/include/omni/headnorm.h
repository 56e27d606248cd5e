/* SPDX-License-Identifier: Apache-2.0 */
/** @file headnorm.h  Root-mean-square normalisation of the heads of queries and keys, each head by itself. */
#ifndef OMNI_HEADNORM_H
#define OMNI_HEADNORM_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A question to the registry. */
typedef struct omni_headnorm_query {
  uint32_t size;       /**< sizeof(omni_headnorm_query) */
  uint16_t type;       /**< of the heads: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t reserved;   /**< 0 */
  uint32_t q_heads;    /**< heads of a row that q_weight scales */
  uint32_t k_heads;    /**< heads behind them that k_weight scales; the two together are 1 or more */
  uint32_t head_dim;   /**< elements of a head, 1 or more */
  float eps;           /**< added to the mean square; finite, not negative */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_headnorm_query;

/** Arguments of a run. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_headnorm_args {
  uint32_t size;                 /**< sizeof(omni_headnorm_args) */
  uint32_t m;                    /**< rows (tokens); 0 writes nothing and needs no pointers */
  void* x;                       /**< [m][q_heads + k_heads][head_dim], normalised in place */
  int64_t ldx;                   /**< elements from row to row, >= (q_heads + k_heads) * head_dim; columns beyond are not touched */
  const float* q_weight;         /**< [head_dim]; not looked at without q_heads */
  const float* k_weight;         /**< [head_dim]; likewise */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_headnorm_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_headnorm_select(const omni_headnorm_query* query, omni_plan** plan);

/**
 * Every head h becomes (h * r) * weight, r = 1 / sqrt(sum(h * h) / head_dim + eps), with the lanes, the tree and the one rounding
 * of omni_rmsnorm_run(): the same bits as that operation on the head alone. Never allocates; thread-safe; on an error nothing is
 * written.
 */
OMNI_API omni_status omni_headnorm_run(const omni_plan* plan, const omni_headnorm_args* args);

#ifdef __cplusplus
}
#endif
#endif
