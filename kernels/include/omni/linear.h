/* SPDX-License-Identifier: Apache-2.0 */
/** @file linear.h  y = x * W^T on packed weights: select a kernel, size the workspace, run. */
#ifndef OMNI_LINEAR_H
#define OMNI_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Numerics class: which answer, bit for bit (docs/numerics.md). */
typedef enum omni_numerics {
  OMNI_NUMERICS_GROUP = 1, /**< pair chain inside a group, scale and zero folded once per group; the default */
  OMNI_NUMERICS_TORCH = 2, /**< the bits of PyTorch's _weight_int4pack_mm_for_cpu (AVX-512 build) */
  OMNI_NUMERICS_EXACT = 3, /**< s8 rows times w4s or w8s weights in exact integers: the bits of vLLM's int4_scaled_mm_cpu */
  OMNI_NUMERICS_DENSE = 4, /**< w16 and w32 weights: pair chain over K for bf16 with bf16, one ascending FMA chain otherwise */
  OMNI_NUMERICS_FAST = 5   /**< no promise of bits, a bound only: AMX bf16 for tg4 and w16 weights; never chosen by default */
} omni_numerics;

/** What happens to the fp32 sum before the store. Bits may be combined: residual + (c + bias). */
enum { OMNI_EPILOGUE_NONE = 0, OMNI_EPILOGUE_BIAS = 1, OMNI_EPILOGUE_RESIDUAL = 2 };

/** Most rows of one run. */
#define OMNI_LINEAR_MOST_ROWS ((uint32_t)1 << 20)

/** A question to the registry. */
typedef struct omni_linear_query {
  uint32_t size;          /**< sizeof(omni_linear_query) */
  uint16_t numerics;      /**< omni_numerics */
  uint16_t x_type;        /**< OMNI_DTYPE_BF16; class torch also F32 (then scales are F32 too), dense F32, exact F32 and S8 */
  uint16_t y_type;        /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t residual_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 with OMNI_EPILOGUE_RESIDUAL, else OMNI_DTYPE_NONE */
  uint32_t epilogue;      /**< OMNI_EPILOGUE_* */
  uint32_t max_m;         /**< most rows that omni_run will be given, 1..OMNI_LINEAR_MOST_ROWS */
  uint32_t max_threads;   /**< most threads of the omni_parallel of omni_run; 0: as many as the process-wide pool has */
  omni_layout weights;    /**< group, torch: tg4; group also w8s (W8A16); exact: w4s, w8s; dense: w16, w32; fast: tg4, w16 */
  const char* kernel;     /**< a kernel name to force, or NULL */
  const char* max_isa;    /**< a tier name that caps this plan only, or NULL */
} omni_linear_query;

/** A chosen and generated kernel. Immutable, usable from any number of threads at once. */
typedef struct omni_plan omni_plan;

/** What a plan is. Strings live as long as the plan. */
typedef struct omni_plan_info {
  uint32_t size;           /**< sizeof(omni_plan_info) */
  uint32_t isa_required;   /**< OMNI_ISA_* bits of the kernel */
  const char* kernel;      /**< name of the registry row that serves one row of x */
  const char* reason;      /**< why this row: one line */
  const char* kernel_rows; /**< the same for more rows of x; "" when max_m is 1 */
  const char* reason_rows; /**< likewise */
  const char* code;        /**< "jit", "jit (double mapping)" or "compiled" (executable memory refused, or a compiled row) */
  size_t code_bytes;       /**< machine code of this plan's tiles */
  omni_layout weights;     /**< of the query */
} omni_plan_info;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call. */
typedef struct omni_linear_args {
  uint32_t size;                 /**< sizeof(omni_linear_args) */
  uint32_t m;                    /**< rows, 0..max_m; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][K] of x_type, aligned to its element */
  int64_t ldx;                   /**< >= K; columns beyond K are never read */
  const float* x_scales;         /**< [m], the scale of each row, with x_type S8; else not looked at */
  const int32_t* k_permutation;  /**< act-order: input k is x[k_permutation[k]] (from omni_repack), or NULL */
  const void* codes;             /**< packed codes or weights, 16-byte aligned (64 is faster) */
  size_t codes_bytes;            /**< at least omni_packed_size */
  const void* scales;            /**< scale array of the layout, aligned to its element; NULL for w16 and w32 */
  size_t scales_bytes;           /**< at least omni_scales_size */
  const float* bias;             /**< [N] with OMNI_EPILOGUE_BIAS */
  const void* residual;          /**< [m][N] of residual_type with OMNI_EPILOGUE_RESIDUAL; may be y itself */
  int64_t ld_residual;           /**< >= N */
  void* y;                       /**< [m][N] of y_type; must not overlap x, codes, scales, bias or workspace */
  int64_t ldy;                   /**< >= N; columns beyond N are never written */
  void* workspace;               /**< omni_workspace_size bytes, 64-byte aligned */
  size_t workspace_bytes;        /**< at least omni_workspace_size for m rows */
  void* scratch;                 /**< omni_run_portion only: omni_scratch_size bytes of this call's own, 64-byte aligned */
  size_t scratch_bytes;          /**< at least omni_scratch_size for m rows */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_linear_args;

/** Chooses a kernel (a pure function of the machine and the query) and generates it. Thread-safe; code is cached and shared. */
OMNI_API omni_status omni_select(const omni_linear_query* query, omni_plan** plan);
/** Releases a plan. NULL is allowed. No run may be using it. */
OMNI_API void omni_plan_destroy(omni_plan* plan);
/** What the plan is: the kernel, why, and its code. Thread-safe. */
OMNI_API omni_status omni_plan_get_info(const omni_plan* plan, omni_plan_info* out);
/** Bytes of workspace for m rows: the prepared rows, which grow with m * K, and at most 1 MiB for each of max_threads. */
OMNI_API omni_status omni_workspace_size(const omni_plan* plan, uint32_t m, size_t* bytes);
/** Bytes of scratch that each omni_run_portion of m rows needs for itself: at most 256 KiB, often 0. */
OMNI_API omni_status omni_scratch_size(const omni_plan* plan, uint32_t m, size_t* bytes);

/** Prepares x and runs every channel on `parallel`. Never allocates. On an error nothing is written. */
OMNI_API omni_status omni_run(const omni_plan* plan, const omni_linear_args* args);
/**
 * The two halves of omni_run for callers that split the work themselves: omni_prepare() fills the workspace from x, then
 * omni_run_portion() computes channels [n0, n1), any split, from any threads at once. `parallel` is not used. Rows need no such
 * calls: a batch may be cut into runs in any way, with x and y advanced by whole rows.
 */
OMNI_API omni_status omni_prepare(const omni_plan* plan, const omni_linear_args* args);
/** The second half: see omni_prepare(). Portions that do not overlap may run at once. */
OMNI_API omni_status omni_run_portion(const omni_plan* plan, const omni_linear_args* args, int64_t n0, int64_t n1);

#ifdef __cplusplus
}
#endif
#endif
