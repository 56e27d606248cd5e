/* SPDX-License-Identifier: Apache-2.0 */
/** @file attention.h  Grouped-query attention, decode and prefill, over a ring-buffer cache of keys and values. */
#ifndef OMNI_ATTENTION_H
#define OMNI_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Positions per block of the cache; every capacity is a multiple of it. */
#define OMNI_KV_BLOCK 64
/** Largest head_dim. */
#define OMNI_ATTENTION_MOST_HEAD_DIM 256
/** Largest number of rows of one append or run. */
#define OMNI_ATTENTION_MOST_ROWS ((uint32_t)1 << 20)

/**
 * Keys and values of one layer of one sequence, in the caller's memory. Position p lies in slot p % capacity.
 *
 * data is [capacity / 64 blocks][kv_heads] records, each of
 *
 *     K         bf16: [head_dim/2][64 slots][2]    f32, s8: [head_dim][64 slots]
 *     V         [64 slots][head_dim]
 *     k_scale   [64] fp32, s8 only
 *     v_scale   [64] fp32, s8 only
 *     padding   256 bytes, bf16 and f32 with a head_dim that is no multiple of 64
 *
 * (docs/attention.md has the picture.) A cache that does not wrap (no window) therefore grows by adding bytes at its end: with
 * realloc() or a larger mapping, then data, bytes and capacity are set anew. Slots that were never written may hold anything.
 *
 * The struct is plain data: copying it together with its memory copies the cache. omni_attention_append() moves begin and end;
 * a caller may lower `end` (down to begin) to take tokens back, or set both to 0 to start over.
 */
typedef struct omni_kv_cache {
  uint32_t size;     /**< sizeof(omni_kv_cache) */
  uint16_t type;     /**< OMNI_DTYPE_BF16, OMNI_DTYPE_F32, or OMNI_DTYPE_S8 (one scale per head and token) */
  uint16_t reserved; /**< 0 */
  uint32_t kv_heads; /**< >= 1 */
  uint32_t head_dim; /**< a multiple of 8, 8..256 */
  int64_t capacity;  /**< slots, a positive multiple of 64 */
  int64_t begin;     /**< positions [begin, end) are held */
  int64_t end;       /**< the next position */
  void* data;        /**< 64-byte aligned */
  size_t bytes;      /**< at least omni_kv_cache_size */
} omni_kv_cache;

/**
 * Slots that a ring needs so that a chunk of up to most_rows rows can be appended before any of them is attended to:
 * window - 1 + most_rows, rounded up to 64. OMNI_ERR_SHAPE when window or most_rows is below 1.
 */
OMNI_API omni_status omni_kv_cache_ring(int64_t window, int64_t most_rows, int64_t* capacity);
/** Bytes of a cache: capacity * kv_heads * 2 * (head_dim elements, and 4 bytes of scale with s8), and the padding. */
OMNI_API omni_status omni_kv_cache_size(omni_dtype type, uint32_t kv_heads, uint32_t head_dim, int64_t capacity, size_t* bytes);
/** Fills `cache` (size included) as an empty one. The memory is not touched. */
OMNI_API omni_status omni_kv_cache_init(omni_kv_cache* cache, omni_dtype type, uint32_t kv_heads, uint32_t head_dim,
                                        int64_t capacity, void* data, size_t bytes);

/** A question to the registry. */
typedef struct omni_attention_query {
  uint32_t size;        /**< sizeof(omni_attention_query) */
  uint16_t cache_type;  /**< OMNI_DTYPE_BF16, OMNI_DTYPE_F32 or OMNI_DTYPE_S8 */
  uint16_t q_type;      /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t kv_type;     /**< of the rows that are appended: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t out_type;    /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint32_t heads;       /**< query heads, a multiple of kv_heads; query head h reads K/V head h / (heads / kv_heads) */
  uint32_t kv_heads;    /**< >= 1 */
  uint32_t head_dim;    /**< a multiple of 8, 8..256; tuned for 64, 128 and 256 */
  uint32_t max_m;       /**< most rows of one run, 1..OMNI_ATTENTION_MOST_ROWS; decides the workspace, nothing else */
  uint32_t max_threads; /**< most threads of the omni_parallel of a run that get scratch; 0: as many as the process-wide pool has */
  int64_t window;       /**< keys that a query sees, itself included; 0: all */
  float scale;          /**< of the scores; 0: fp32(1 / sqrt(head_dim)) */
  const char* kernel;   /**< a kernel name to force, or NULL */
  const char* max_isa;  /**< a tier name that caps this plan only, or NULL */
} omni_attention_query;

/** New keys and values. Leading dimensions count elements; all pointers are borrowed for the call. */
typedef struct omni_attention_append_args {
  uint32_t size;                 /**< sizeof(omni_attention_append_args) */
  uint32_t rows;                 /**< 0 changes nothing and needs no pointers but the cache */
  int64_t position;              /**< of the first row, in [begin, end] of the cache; anything >= 0 when it is empty */
  omni_kv_cache* cache;          /**< written; end becomes position + rows */
  const void* k;                 /**< [rows][kv_heads * head_dim] of kv_type, after RoPE, aligned to its element */
  int64_t ldk;                   /**< >= kv_heads * head_dim */
  const void* v;                 /**< likewise */
  int64_t ldv;                   /**< >= kv_heads * head_dim */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_attention_append_args;

/** Queries at consecutive positions whose keys and values are in the cache, their own included. */
typedef struct omni_attention_args {
  uint32_t size;                 /**< sizeof(omni_attention_args) */
  uint32_t m;                    /**< rows, 0..max_m; 0 writes nothing and needs no pointers */
  int64_t position;              /**< of row 0; row i stands at position + i */
  const omni_kv_cache* cache;    /**< holds every position that a row sees */
  const void* q;                 /**< [m][heads * head_dim] of q_type, after RoPE, aligned to its element */
  int64_t ldq;                   /**< >= heads * head_dim */
  void* out;                     /**< [m][heads * head_dim] of out_type; must not overlap q, the cache or the workspace */
  int64_t ld_out;                /**< >= heads * head_dim; columns beyond are never written */
  void* workspace;               /**< 64-byte aligned */
  size_t workspace_bytes;        /**< at least omni_attention_workspace_size for m rows */
  const omni_parallel* parallel; /**< NULL: the process-wide pool */
} omni_attention_args;

/**
 * Chooses a kernel: a pure function of the machine and the query. Thread-safe. The plan goes with omni_plan_get_info() and
 * omni_plan_destroy() and serves every layer and sequence of its shape at once.
 */
OMNI_API omni_status omni_attention_select(const omni_attention_query* query, omni_plan** plan);

/**
 * Rounds rows of keys and values to the type of the cache (docs/numerics.md, "Attention") and stores them. Never allocates.
 *
 * OMNI_ERR_BUFFER_SIZE when the capacity is too small: with a window below window - 1 + rows, so that the first of the rows would
 * miss keys; without one below position + rows. OMNI_ERR_RANGE for a position outside [begin, end]. On an error nothing is written.
 * One call at a time for each cache, and none while a run reads it.
 */
OMNI_API omni_status omni_attention_append(const omni_plan* plan, const omni_attention_append_args* args);

/** Bytes of workspace for m rows: bounded by m and max_threads (a few hundred KiB a thread), whatever the length of the context. */
OMNI_API omni_status omni_attention_workspace_size(const omni_plan* plan, uint32_t m, size_t* bytes);

/**
 * out[i][h] = softmax(scale * q[i][h] . K[j]) V[j] over the keys j of head h / (heads / kv_heads) with
 * position + i - window < j <= position + i (all 0 <= j <= position + i without a window). Bits do not depend on how rows are cut
 * into runs and appends, on the capacity, on the tier or on threads. Never allocates. Any number of runs may read one cache at
 * once. OMNI_ERR_RANGE when a key that is seen lies outside [begin, end). On an error nothing is written.
 */
OMNI_API omni_status omni_attention_run(const omni_plan* plan, const omni_attention_args* args);

#ifdef __cplusplus
}
#endif
#endif
