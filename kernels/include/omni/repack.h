/* SPDX-License-Identifier: Apache-2.0 */
/** @file repack.h  Pack, unpack and convert 4-bit codes and their scales, in chunks. */
#ifndef OMNI_REPACK_H
#define OMNI_REPACK_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most bytes of scratch that one omni_repack may hold at any time, whatever the matrix and the thread count. */
#define OMNI_REPACK_TRANSIENT_LIMIT ((size_t)4 << 20)

/**
 * Repacks the codes of a matrix from one format into another. Every format of 4-bit codes is a source and, the GPTQ, AWQ and
 * compressed-tensors word formats excepted, a destination; int8 weights convert between codes_s8 and w8s. (w16 and w32 have
 * omni_pack_dense().) A chunked repack has the bytes of a whole-matrix one.
 */
typedef struct omni_repack_args {
  uint32_t size;               /**< sizeof(omni_repack_args) */
  uint16_t source_format;      /**< omni_format */
  uint16_t destination_format; /**< omni_format */
  int64_t n;                   /**< output channels */
  int64_t k;                   /**< inputs */
  const void* source;          /**< aligned to its element (packed formats: any) */
  size_t source_bytes;         /**< at least what the source format needs */
  /** Leading dimension of a row-major source in its elements (bytes, words); 0 means dense. Packed blocks have none.
   *  Padding nibbles and columns beyond K are never looked at. */
  int64_t source_ld;
  void* destination;        /**< 16-byte aligned for packed formats */
  size_t destination_bytes; /**< at least what the destination format needs */
  int64_t destination_ld;   /**< likewise; 0 means dense */
  /**
   * Act-order: g_idx[k] is the group of input k. Inputs are then stored sorted by group (stable), and k_permutation[i] receives
   * the input that position i holds; omni_linear_args.k_permutation takes it. Every group but the last must hold exactly
   * `group` inputs, else OMNI_ERR_GROUP. NULL: no reordering.
   */
  const int32_t* g_idx;
  uint32_t group;                /**< needed with g_idx and with OMNI_FORMAT_VLLM_W4A8 only */
  int32_t* k_permutation;        /**< [K], written when g_idx is given */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
  /** To OMNI_FORMAT_VLLM_W4A8 only, whose blocks hold sums of (code - zero point): uint8 [K/group][N]; NULL: 8 everywhere. */
  const uint8_t* zeros;
} omni_repack_args;

/** Runs it. OMNI_ERR_CODE names the first (row, column) above 15 of a u8 or i32 source; then the destination is undefined. */
OMNI_API omni_status omni_repack(const omni_repack_args* args);

/** Where integer zero points come from. */
typedef enum omni_zeros {
  OMNI_ZEROS_SYMMETRIC = 0, /**< zero point 8 everywhere: z = +0 */
  OMNI_ZEROS_U8 = 1,        /**< uint8 [ceil(K/g)][N] */
  OMNI_ZEROS_GPTQ_V1 = 2,   /**< int32 [ceil(K/g)][N/8], nibble i of word c = channel 8c+i, stored minus one */
  OMNI_ZEROS_GPTQ_V2 = 3,   /**< the same, stored as is */
  OMNI_ZEROS_AWQ = 4,       /**< int32 [ceil(K/g)][N/8] in AWQ's channel order, stored as is */
  OMNI_ZEROS_CT_PACKED = 5, /**< int32 [ceil(N/8)][ceil(K/g)], packed along N */
  OMNI_ZEROS_REAL = 6       /**< real zeros of the scales' type and shape: used as they are */
} omni_zeros;

/**
 * Builds the scale array of a layout. tg4: pairs [ceil(K/g)][N][2], z = (8 - zp) * s, one fp32 rounding. w4s: scales [ceil(K/g)][N]
 * and, with OMNI_LAYOUT_ZEROS, the zero points (0..16) behind them; without it every zero point must be 8. w8s: scales only.
 */
typedef struct omni_scales_args {
  uint32_t size;             /**< sizeof(omni_scales_args) */
  uint16_t scale_type;       /**< omni_dtype of `scales`: BF16, F16 or F32 */
  uint16_t zeros_kind;       /**< omni_zeros */
  omni_layout layout;        /**< says N, K, group and the type of the result */
  const void* scales;        /**< of scale_type */
  int32_t scales_by_channel; /**< 0: [ceil(K/g)][N] (GPTQ, AWQ); 1: [N][ceil(K/g)] (compressed-tensors) */
  const void* zeros;         /**< NULL when symmetric */
  void* out;                 /**< scale-and-zero array of layout.scale_type */
  size_t out_bytes;          /**< at least omni_scales_size */
} omni_scales_args;

/** OMNI_ERR_INEXACT, naming the first group and channel, when the layout is BF16 and a scale or zero is not bf16-exact, or when a
 *  zero is no zero point that a w4s layout can hold. Nothing is written then. */
OMNI_API omni_status omni_pack_scales(const omni_scales_args* args);

/** Converts scale arrays between tg4 and w4s (and their scale types). The codes convert with omni_repack(). */
typedef struct omni_convert_scales_args {
  uint32_t size;                  /**< sizeof(omni_convert_scales_args) */
  uint32_t reserved;              /**< 0 */
  omni_layout source_layout;      /**< tg4 or w4s */
  omni_layout destination_layout; /**< tg4 or w4s, with the same n, k and group */
  const void* source;             /**< scale array of source_layout, aligned to its element */
  size_t source_bytes;            /**< at least omni_scales_size */
  void* destination;              /**< must not overlap the source */
  size_t destination_bytes;       /**< at least omni_scales_size */
} omni_convert_scales_args;

/**
 * Lossless or refused. A real zero z becomes the zero point zp in 0..15 with z == (8 - zp) * s in fp32; where there is none, or it
 * is not 8 and the destination has no OMNI_LAYOUT_ZEROS, or a number is not bf16-exact in a bf16 destination: OMNI_ERR_INEXACT,
 * naming the first group and channel, and nothing is written.
 */
OMNI_API omni_status omni_convert_scales(const omni_convert_scales_args* args);

#ifdef __cplusplus
}
#endif
#endif
