/* SPDX-License-Identifier: Apache-2.0 */
/** @file rmsnorm.h  Root-mean-square normalisation of rows, with the residual add before it and quantisation after it fused. */
#ifndef OMNI_RMSNORM_H
#define OMNI_RMSNORM_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where y is rounded. */
typedef enum omni_rmsnorm_rounding {
  OMNI_RMSNORM_ONE_ROUNDING = 0, /**< y = (h * r) * w in fp32, rounded once when stored: PyTorch's F.rms_norm */
  OMNI_RMSNORM_TWO_ROUNDINGS = 1 /**< h * r is rounded to bf16 before it meets w: Hugging Face's modules in bf16 */
} omni_rmsnorm_rounding;

/** A question to the registry. */
typedef struct omni_rmsnorm_query {
  uint32_t size;          /**< sizeof(omni_rmsnorm_query) */
  uint16_t x_type;        /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t weight_type;   /**< OMNI_DTYPE_BF16, OMNI_DTYPE_F32 or OMNI_DTYPE_NONE (no weight) */
  uint16_t residual_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32: add x to a residual stream first; OMNI_DTYPE_NONE: normalise x */
  uint16_t y_type;      /**< OMNI_DTYPE_BF16, OMNI_DTYPE_F32, or OMNI_DTYPE_S8: quantised rows as omni_quantize_run() makes them */
  uint16_t code_source; /**< with y_type S8: what is quantised, y as OMNI_DTYPE_F32 holds it or rounded to OMNI_DTYPE_BF16 first
                             (what a model in bf16 quantises); else OMNI_DTYPE_NONE */
  uint16_t rounding;    /**< omni_rmsnorm_rounding */
  int64_t n;            /**< elements of a row, 1 or more */
  float eps;            /**< added to the mean square; finite, not negative */
  uint32_t reserved;    /**< 0 */
  const char* kernel;   /**< a kernel name to force, or NULL */
  const char* max_isa;  /**< a tier name that caps this plan only, or NULL */
} omni_rmsnorm_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_rmsnorm_args {
  uint32_t size;                 /**< sizeof(omni_rmsnorm_args) */
  uint32_t m;                    /**< rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][n] of x_type */
  int64_t ldx;                   /**< >= n; columns beyond n are never read */
  const void* weight;            /**< [n] of weight_type */
  void* residual;                /**< [m][n] of residual_type, updated in place: h = residual + x, rounded to its type */
  int64_t ld_residual;           /**< >= n */
  void* y;                       /**< [m][n] of y_type out; may be x itself where both have one type and one leading dimension,
                                      else overlaps nothing */
  int64_t ldy;                   /**< >= n; columns beyond n are never written */
  float* scales;                 /**< [m] out, with y_type S8; else not looked at */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_rmsnorm_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_rmsnorm_select(const omni_rmsnorm_query* query, omni_plan** plan);

/**
 * Per row, with h = x or, with a residual stream, h = residual + x as the stream stores it:
 * y = (h * r) * w, r = 1 / sqrt(sum(h^2) / n + eps), every step in fp32. The sum runs in 64 fixed lanes (docs/numerics.md), so that
 * every tier, batch and thread count gives the same bits. Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
 *
 * Zeros keep their sign. A NaN makes its row NaN; an infinity makes itself NaN and the rest of its row zeros, as the formula does.
 * Quantised, either gives scale NaN and codes 0. Never allocates; thread-safe; on an error nothing is written.
 */
OMNI_API omni_status omni_rmsnorm_run(const omni_plan* plan, const omni_rmsnorm_args* args);

#ifdef __cplusplus
}
#endif
#endif
