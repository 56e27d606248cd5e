/* SPDX-License-Identifier: Apache-2.0 */
/** @file swiglu.h  SiLU of one half of each row times the other half: the gate of a feed-forward layer. */
#ifndef OMNI_SWIGLU_H
#define OMNI_SWIGLU_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A question to the registry. */
typedef struct omni_swiglu_query {
  uint32_t size;       /**< sizeof(omni_swiglu_query) */
  uint16_t x_type;     /**< of gate and up: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t y_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  int64_t n;           /**< elements of gate, of up and of y in a row, >= 0 */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_swiglu_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_swiglu_args {
  uint32_t size;       /**< sizeof(omni_swiglu_args) */
  uint32_t m;          /**< rows; 0 writes nothing and needs no pointers */
  const void* gate_up; /**< [m][2n] of x_type: n gates, then n ups */
  int64_t ld_gate_up;  /**< >= 2n */
  void* y;             /**< [m][n] of y_type out; may be gate_up itself where both have one type and one leading dimension,
                            else overlaps nothing */
  int64_t ldy;         /**< >= n; columns beyond n are never written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_swiglu_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_swiglu_select(const omni_swiglu_query* query, omni_plan** plan);

/**
 * y = (g / (1 + exp(-g))) * u in fp32, rounded once when stored (Shazeer, "GLU variants improve transformer", 2020). -Inf counts as
 * -0 before the product, as does every g below -88.72, where exp(-g) is infinite. exp is a polynomial of ours with one fixed order
 * of FMAs, so every tier gives the same bits; docs/elementwise.md has its error. Never allocates; thread-safe; on an error nothing
 * is written.
 */
OMNI_API omni_status omni_swiglu_run(const omni_plan* plan, const omni_swiglu_args* args);

#ifdef __cplusplus
}
#endif
#endif
