/* SPDX-License-Identifier: Apache-2.0 */
/** @file activation.h  Functions of single elements, and SnakeBeta, whose parameters differ by channel. */
#ifndef OMNI_ACTIVATION_H
#define OMNI_ACTIVATION_H

#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which function. */
typedef enum omni_activation {
  OMNI_ACTIVATION_RELU = 1,    /**< x > 0 ? x : +0 */
  OMNI_ACTIVATION_ELU = 2,     /**< x > 0 ? x : exp(x) - 1, accurate near 0 */
  OMNI_ACTIVATION_GELU = 3,    /**< x * Phi(x), the exact form (erf), as in omni_geglu_run(): -Inf gives NaN */
  OMNI_ACTIVATION_SILU = 4,    /**< x / (1 + exp(-x)), as in omni_swiglu_run(): -Inf gives -0 */
  OMNI_ACTIVATION_SIGMOID = 5, /**< 1 / (1 + exp(-x)) */
  OMNI_ACTIVATION_TANH = 6,    /**< tanh(x), accurate near 0 */
  OMNI_ACTIVATION_EXP = 7,     /**< exp(x) */
  OMNI_ACTIVATION_SNAKE = 8    /**< SnakeBeta: x + sin(x * a)^2 * b with a and b of the element's column */
} omni_activation;

/** A question to the registry. */
typedef struct omni_activation_query {
  uint32_t size;       /**< sizeof(omni_activation_query) */
  uint16_t function;   /**< omni_activation */
  uint16_t x_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t y_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t reserved;   /**< 0 */
  int64_t n;           /**< elements of a row, >= 0 */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_activation_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_activation_args {
  uint32_t size;                 /**< sizeof(omni_activation_args) */
  uint32_t m;                    /**< rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][n] of x_type */
  int64_t ldx;                   /**< >= n; columns beyond n are never read */
  const float* a;                /**< [n] with OMNI_ACTIVATION_SNAKE: exp(alpha); else not looked at */
  const float* b;                /**< [n] with OMNI_ACTIVATION_SNAKE: 1 / (exp(beta) + 1e-9); else not looked at */
  void* y;                       /**< [m][n] of y_type out; may be x itself where both have one type and one leading dimension,
                                      else overlaps nothing */
  int64_t ldy;                   /**< >= n; columns beyond n are never written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_activation_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_activation_select(const omni_activation_query* query, omni_plan** plan);

/**
 * y = f(x) in fp32, rounded once when stored. Every function is made of IEEE operations in one fixed order, so every tier gives the
 * same bits; docs/elementwise.md has the errors. SnakeBeta (Ziyin, Hartwig and Ueda, 2020, with beta of BigVGAN): t = x * a, s =
 * sin(t), y = fma(s * s, b, x); sin is good to 2.2 ulp for |t| <= 2^18; beyond, any finite t gives a finite result, and an infinite
 * t NaN. NaN gives NaN. Never allocates; thread-safe; on an error nothing is written.
 */
OMNI_API omni_status omni_activation_run(const omni_plan* plan, const omni_activation_args* args);

#ifdef __cplusplus
}
#endif
#endif
