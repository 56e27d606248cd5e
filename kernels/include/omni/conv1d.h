/* SPDX-License-Identifier: Apache-2.0 */
/** @file conv1d.h  One-dimensional convolution over rows of time, dense and depthwise; transposed convolution is a case of it. */
#ifndef OMNI_CONV1D_H
#define OMNI_CONV1D_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most taps of a kernel. */
#define OMNI_CONV1D_MOST_TAPS 64

/**
 * A question to the registry. Activations are [time][channels], one row for each step of time. Output row i reads the input rows
 * i * stride + j * dilation, j = 0..taps-1: what stands before the first new row (zeros, or the end of the last chunk) is part of
 * x, so the kernel itself neither pads nor keeps state.
 *
 * Weights are w16 or w32 of omni_pack_dense() with n = output channels and k = taps * inputs, input (tap j, channel c) at
 * j * inputs + c and tap 0 the oldest. A transposed convolution of stride s whose kernel is a multiple of s long is the same with
 * n = s * output channels: see omni_conv1d_run().
 */
typedef struct omni_conv1d_query {
  uint32_t size;          /**< sizeof(omni_conv1d_query) */
  uint16_t x_type;        /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32; w16 with bf16 x must be OMNI_LAYOUT_SCRUBBED */
  uint16_t y_type;        /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t residual_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 with OMNI_EPILOGUE_RESIDUAL, else OMNI_DTYPE_NONE */
  uint16_t reserved;      /**< 0 */
  uint32_t epilogue;      /**< OMNI_EPILOGUE_*, as for a linear layer */
  uint32_t inputs;        /**< input channels, 1 or more */
  uint32_t taps;          /**< 1..OMNI_CONV1D_MOST_TAPS */
  uint32_t dilation;      /**< rows between the taps, 1 or more */
  uint32_t stride;        /**< rows between the outputs, 1 or more */
  uint32_t max_m;         /**< most output rows of a run, 1..OMNI_LINEAR_MOST_ROWS */
  uint32_t max_threads;   /**< most threads of the omni_parallel of a run; 0: as many as the process-wide pool has */
  omni_layout weights;    /**< w16 or w32; k is taps * inputs */
  const char* kernel;     /**< a kernel name to force, or NULL */
  const char* max_isa;    /**< a tier name that caps this plan only, or NULL */
} omni_conv1d_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_conv1d_args {
  uint32_t size;                 /**< sizeof(omni_conv1d_args) */
  uint32_t m;                    /**< output rows, 0..max_m; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [(m - 1) * stride + (taps - 1) * dilation + 1][inputs] of x_type */
  int64_t ldx;                   /**< >= inputs; columns beyond are never read */
  const void* codes;             /**< packed weights, 16-byte aligned (64 is faster) */
  size_t codes_bytes;            /**< at least omni_packed_size */
  const float* bias;             /**< [n] with OMNI_EPILOGUE_BIAS */
  const void* residual;          /**< [m][n] of residual_type with OMNI_EPILOGUE_RESIDUAL; may be y itself */
  int64_t ld_residual;           /**< >= n */
  void* y;                       /**< [m][n] of y_type; must not overlap x, codes, bias or workspace */
  int64_t ldy;                   /**< >= n; columns beyond n are never written */
  void* workspace;               /**< omni_conv1d_workspace_size bytes, 64-byte aligned */
  size_t workspace_bytes;        /**< at least omni_conv1d_workspace_size for m rows */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_conv1d_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_conv1d_select(const omni_conv1d_query* query, omni_plan** plan);
/** Bytes of workspace for m output rows. */
OMNI_API omni_status omni_conv1d_workspace_size(const omni_plan* plan, uint32_t m, size_t* bytes);

/**
 * y[i][o] = epilogue(sum over (j, c), j ascending, then c, of w[o][j * inputs + c] * x[i * stride + j * dilation][c]), in the order
 * of class dense (docs/numerics.md): fp32 FMAs in ascending order, or pairs where both x and w are bf16 (inputs are then even, or
 * taps is 1). The same bits for any cut of the rows into runs, any thread count and every tier: how audio is chunked never shows.
 *
 * Transposed convolution y[t * s + r] = b + sum over q of W[:, :, r + s * q] x[t - q], of a kernel s * taps long: taps as many, n =
 * s * output channels, row r * outputs + o of the weights (tap j, channel c) = W[c][o][r + s * (taps - 1 - j)]; the bias s times;
 * the output row [s * outputs] is s rows of time. x then begins taps - 1 rows before the first row that is new.
 *
 * Never allocates; thread-safe; on an error nothing is written.
 */
OMNI_API omni_status omni_conv1d_run(const omni_plan* plan, const omni_conv1d_args* args);

/** Depthwise convolution: every channel by itself. */
typedef struct omni_depthwise_query {
  uint32_t size;       /**< sizeof(omni_depthwise_query) */
  uint16_t x_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t y_type;     /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint32_t taps;       /**< 1..OMNI_CONV1D_MOST_TAPS */
  uint32_t dilation;   /**< rows between the taps, 1 or more */
  int64_t n;           /**< channels, 1 or more */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_depthwise_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_depthwise_args {
  uint32_t size;                 /**< sizeof(omni_depthwise_args) */
  uint32_t m;                    /**< output rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m + (taps - 1) * dilation][n] of x_type */
  int64_t ldx;                   /**< >= n */
  const float* weights;          /**< [taps][n], tap 0 the oldest */
  const float* bias;             /**< [n], or NULL */
  void* y;                       /**< [m][n] of y_type; must not overlap x */
  int64_t ldy;                   /**< >= n; columns beyond n are never written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_depthwise_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_depthwise_select(const omni_depthwise_query* query, omni_plan** plan);
/**
 * y[i][c] = (sum over j ascending of fma(weights[j][c], x[i + j * dilation][c], sum), from +0) + bias[c], in fp32, rounded once
 * when stored. The same bits on every tier. Never allocates; thread-safe; on an error nothing is written.
 */
OMNI_API omni_status omni_depthwise_run(const omni_plan* plan, const omni_depthwise_args* args);

#ifdef __cplusplus
}
#endif
#endif
