/* SPDX-License-Identifier: Apache-2.0 */
/** @file layout.h  Element types, packed weight formats and the layout id. */
#ifndef OMNI_LAYOUT_H
#define OMNI_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. */
typedef enum omni_dtype {
  OMNI_DTYPE_NONE = 0,
  OMNI_DTYPE_F32 = 1,
  OMNI_DTYPE_BF16 = 2,
  OMNI_DTYPE_F16 = 3, /**< only as a source of scales */
  OMNI_DTYPE_U8 = 4,
  OMNI_DTYPE_I32 = 5,
  OMNI_DTYPE_S8 = 6 /**< rows quantised as in class exact, and int8 weights */
} omni_dtype;

/**
 * How the 4-bit codes of a matrix [N output channels][K inputs] are stored. `docs/formats/` has the byte diagrams.
 * Formats up to 15 are packed formats of this library, from 16 on they are sources and destinations of conversion only.
 */
typedef enum omni_format {
  OMNI_FORMAT_NONE = 0,
  /** PyTorch tinygemm, AVX-512 build: [N/64][K][32 bytes], byte d = channel d (low) | channel d+32 (high); tail of 16, 32 or 48
   *  channels in adjacent pairs 2j | 2j+1. */
  OMNI_FORMAT_TG4 = 1,
  /** 4-bit weights of class exact: [N/64][K/4][2][64 bytes], byte 4c+i of register h holds input 4r+i of channel 32h+c (low) and
   *  32h+16+c (high); a tail of up to 32 channels has one register. kernels/format/w4s.h. */
  OMNI_FORMAT_W4S = 2,
  /** int8 weights: [N/64][K/4][4][64 bytes], byte 4c+i of register v holds input 4r+i of channel 16v+c; a tail has the registers
   *  that it needs. */
  OMNI_FORMAT_W8S = 3,
  /** bf16 weights: [N/64][K/2][64 channels][2 inputs]; a tail of 16, 32 or 48 channels. */
  OMNI_FORMAT_W16 = 4,
  /** fp32 weights: [N/64][K][64 channels]; a tail of 16, 32 or 48 channels. */
  OMNI_FORMAT_W32 = 5,
  OMNI_FORMAT_TORCH_AVX2 = 16,    /**< the same op's AVX2 build: blocks of 32 channels */
  OMNI_FORMAT_TORCH_DEFAULT = 17, /**< its default build: blocks of 32 channels in adjacent pairs */
  OMNI_FORMAT_CODES_U8 = 18,      /**< uint8 [N][K], one code a byte */
  OMNI_FORMAT_CODES_I32 = 19,     /**< int32 [N][K], one code a word */
  OMNI_FORMAT_ROW_PAIRS = 20,     /**< uint8 [N][ceil(K/2)], byte j = code 2j (low) | code 2j+1 (high) */
  OMNI_FORMAT_ROW_HALVES = 21,    /**< uint8 [N][H], H = ceil(K/2), byte j = code j (low) | code j+H (high) */
  OMNI_FORMAT_GPTQ = 22,          /**< int32 [ceil(K/8)][N], nibble i of word r = input 8r+i */
  OMNI_FORMAT_AWQ = 23,           /**< int32 [K][N/8], nibble i of word c = channel 8c + {0,2,4,6,1,3,5,7}[i] */
  OMNI_FORMAT_CT_PACKED = 24,     /**< compressed-tensors pack-quantized: int32 [N][ceil(K/8)], nibble i of word c = input 8c+i */
  OMNI_FORMAT_VLLM_W4A8 = 25,     /**< vLLM's CPU W4A8 blocks: [N/32][K/b][16b nibble bytes, 32 int32 sums], b = min(group, 128) */
  OMNI_FORMAT_CODES_S8 = 26       /**< int8 [N][K], one weight a byte: the source of w8s */
} omni_format;

/** Bits of omni_layout.flags. omni_layout_init sets the first two, they are checked wherever a layout is taken; the others are the
 *  caller's choice, for the formats that they name. */
enum {
  OMNI_LAYOUT_PADDED_N = 1, /**< N is no multiple of 16: the tail is padded with code 8 to the next one (PyTorch refuses such N) */
  OMNI_LAYOUT_SHORT_GROUP = 2, /**< K is no multiple of the group: the last group is short */
  OMNI_LAYOUT_ZEROS = 4,       /**< w4s: integer zero points uint8 [ceil(K/group)][N] follow the scales; else every zero is 8 */
  OMNI_LAYOUT_SCRUBBED = 8     /**< w16: values below 2^-56 were replaced by +0 when packing, so that bf16 x may be used */
};

/**
 * Layout id: everything that decides what the bytes of a packed weight mean. Fill it with omni_layout_init().
 *
 * tg4: w = (q - 8) * s + z, q in 0..15; s and z per (group of `group` inputs, channel). Scales and zeros are one array
 * [ceil(K/group)][N][2] of scale_type, (scale, zero) interleaved, as PyTorch's qScaleAndZeros. Codes are padded along K to a
 * multiple of 32 with code 8.
 *
 * w4s: w = (q - zero) * s. The scale array is [ceil(K/group)][N], with OMNI_LAYOUT_ZEROS followed by uint8 [ceil(K/group)][N].
 * w8s: w = q * s with q in -128..127; scales [ceil(K/group)][N]. w16, w32: no scales; scale_type is OMNI_DTYPE_NONE and group K.
 */
typedef struct omni_layout {
  uint32_t size;       /**< sizeof(omni_layout) */
  uint16_t format;     /**< omni_format */
  uint16_t version;    /**< of that format; 1 today */
  uint16_t scale_type; /**< omni_dtype: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32; OMNI_DTYPE_NONE for w16 and w32 */
  uint16_t flags;      /**< OMNI_LAYOUT_* */
  uint32_t group;      /**< 32, 64, 128, 256 or K */
  int64_t n;           /**< output channels, >= 0 */
  int64_t k;           /**< inputs, >= 1 */
} omni_layout;

/** Fills a layout id of a packed format. `group` may exceed K (then there is one short group). */
OMNI_API omni_status omni_layout_init(omni_layout* out, omni_format format, int64_t n, int64_t k, uint32_t group,
                                      omni_dtype scale_type);
/** Checks a layout id that came from elsewhere (a file, another version of the library). */
OMNI_API omni_status omni_layout_check(const omni_layout* layout);
/** Bytes of the packed codes; of tg4 pad16(N) * pad32(K) / 2. Also for the conversion formats (there without padding along K). */
OMNI_API omni_status omni_packed_size(const omni_layout* layout, size_t* bytes);
/** Bytes of the scale array, zeros included; of tg4 ceil(K/group) * N * 2 * sizeof(scale_type); 0 for w16 and w32. */
OMNI_API omni_status omni_scales_size(const omni_layout* layout, size_t* bytes);
/** Writes the id as text, e.g. "tg4.1:n=13312,k=2048,g=128,s=bf16", at most 96 bytes with the NUL. */
OMNI_API omni_status omni_layout_to_text(const omni_layout* layout, char* text, size_t bytes);
/** Reads that text. OMNI_ERR_LAYOUT on anything else, another version included. */
OMNI_API omni_status omni_layout_from_text(const char* text, omni_layout* out);

#ifdef __cplusplus
}
#endif
#endif
