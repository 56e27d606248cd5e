/* SPDX-License-Identifier: Apache-2.0 */
/** @file dense.h  Pack bf16 and fp32 weights into w16 and w32, and read them back. docs/formats/w16.md draws the bytes. */
#ifndef OMNI_DENSE_H
#define OMNI_DENSE_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Packs a row-major matrix [N][K].
 *
 * layout.format is OMNI_FORMAT_W16 (values round to nearest even, any NaN that rounds is 0x7FC0; a bf16 source is copied) or
 * OMNI_FORMAT_W32 (sources widen exactly). With OMNI_LAYOUT_SCRUBBED in layout.flags, w16 values other than zero with a magnitude
 * below 2^-56 become +0: bf16 x needs that (docs/numerics.md). Without it every value is kept.
 */
typedef struct omni_pack_dense_args {
  uint32_t size;                 /**< sizeof(omni_pack_dense_args) */
  uint16_t source_type;          /**< omni_dtype of `source`: OMNI_DTYPE_BF16, OMNI_DTYPE_F16 or OMNI_DTYPE_F32 */
  uint16_t refuse_inexact;       /**< not 0: OMNI_ERR_INEXACT where w16 would round, naming the first (row, column) */
  omni_layout layout;            /**< from omni_layout_init(), scale_type OMNI_DTYPE_NONE and group K */
  const void* source;            /**< [N][K], aligned to its element */
  size_t source_bytes;           /**< at least ((N - 1) * source_ld + K) elements */
  int64_t source_ld;             /**< elements from one row to the next, >= K; 0 means K */
  void* out;                     /**< 16-byte aligned; 64 is faster */
  size_t out_bytes;              /**< at least omni_packed_size */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_pack_dense_args;

/** What packing met. */
typedef struct omni_pack_dense_result {
  uint32_t size;        /**< sizeof(omni_pack_dense_result), set by the caller */
  uint32_t reserved;    /**< 0 */
  int64_t small_values; /**< w16: values other than zero with a magnitude below 2^-56; replaced when scrubbing, else kept */
  /** args.layout; OMNI_LAYOUT_SCRUBBED is added to w16 when small_values is 0, for then scrubbing has nothing to do and weights
   * that also serve gather or fp32 x may serve bf16 x, too. */
  omni_layout layout;
} omni_pack_dense_result;

/** Packs; `result` may be NULL. After OMNI_ERR_INEXACT the destination is undefined; after other errors nothing was written.
 *  Thread-safe. Never allocates. */
OMNI_API omni_status omni_pack_dense(const omni_pack_dense_args* args, omni_pack_dense_result* result);

/** Reads packed rows back as a row-major matrix. */
typedef struct omni_unpack_dense_args {
  uint32_t size;                 /**< sizeof(omni_unpack_dense_args) */
  uint16_t out_type;             /**< OMNI_DTYPE_BF16 (w16 only) or OMNI_DTYPE_F32; both exact */
  uint16_t reserved;             /**< 0 */
  omni_layout layout;            /**< of w16 or w32 */
  const void* weights;           /**< packed, 16-byte aligned */
  size_t weights_bytes;          /**< at least omni_packed_size */
  int64_t n0;                    /**< first row */
  int64_t n1;                    /**< one past the last row, n0 <= n1 <= N */
  void* out;                     /**< [n1 - n0][K], aligned to its element */
  size_t out_bytes;              /**< at least ((n1 - n0 - 1) * out_ld + K) elements */
  int64_t out_ld;                /**< elements from one row to the next, >= K; 0 means K; columns beyond K are not written */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_unpack_dense_args;

/** Unpacks. On an error nothing is written. Thread-safe. Never allocates. */
OMNI_API omni_status omni_unpack_dense(const omni_unpack_dense_args* args);

#ifdef __cplusplus
}
#endif
#endif
