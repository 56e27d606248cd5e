/* SPDX-License-Identifier: Apache-2.0 */
/** @file dequant.h  Direct de-interleave dequantisation of packed 4-bit weights. */
#ifndef OMNI_DEQUANT_H
#define OMNI_DEQUANT_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Order of the dequantised window. */
typedef enum omni_order {
  OMNI_ORDER_NK = 0, /**< out[n - n0][k - k0] */
  OMNI_ORDER_KN = 1  /**< out[k - k0][n - n0] */
} omni_order;

/**
 * Dequantises the window [n0, n1) x [k0, k1): fp32 = fma(q - 8, s, z), bf16 = RNE of it, subnormals kept; any NaN is 0x7FC0 or
 * 0x7FC00000. Bit-exact on every tier. Results from 4 MiB on are stored past the caches where rows allow it (64-byte multiples).
 */
typedef struct omni_dequant_args {
  uint32_t size;                 /**< sizeof(omni_dequant_args) */
  uint16_t out_type;             /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t order;                /**< omni_order */
  omni_layout layout;            /**< OMNI_FORMAT_TG4 */
  const void* codes;             /**< packed codes, 16-byte aligned */
  size_t codes_bytes;            /**< at least omni_packed_size */
  const void* scales;            /**< scale-and-zero array, aligned to its element */
  size_t scales_bytes;           /**< at least omni_scales_size */
  int64_t n0;                    /**< first channel of the window */
  int64_t n1;                    /**< one past its last channel, n0 <= n1 <= N */
  int64_t k0;                    /**< first input of the window */
  int64_t k1;                    /**< one past its last input, k0 <= k1 <= K */
  void* out;                     /**< aligned to its element */
  int64_t ld_out;                /**< elements, >= the inner extent */
  const char* kernel;            /**< a kernel name to force, or NULL */
  const char* max_isa;           /**< a tier name that caps this call only, or NULL */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_dequant_args;

/** Runs it. An empty window writes nothing. Thread-safe. On an error nothing is written. */
OMNI_API omni_status omni_dequantize(const omni_dequant_args* args);

#ifdef __cplusplus
}
#endif
#endif
