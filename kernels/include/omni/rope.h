/* SPDX-License-Identifier: Apache-2.0 */
/** @file rope.h  Rotary position embedding: tables of cosines and sines, and the rotation of heads in place. */
#ifndef OMNI_ROPE_H
#define OMNI_ROPE_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Positions run from 0 to one less than this: where fp32 still holds every integer. */
#define OMNI_ROPE_MOST_POSITIONS ((int64_t)1 << 24)

/** Rows [p0, p1) of a table: one row of `rot` floats for each position, rot/2 cosines and then rot/2 sines. */
typedef struct omni_rope_range {
  uint32_t size; /**< sizeof(omni_rope_range) */
  uint32_t rot;  /**< rotated dimensions: even, 2 or more */
  double theta;  /**< base of the frequencies: finite, above 1 */
  int64_t p0;    /**< first position, >= 0 */
  int64_t p1;    /**< one past the last, <= OMNI_ROPE_MOST_POSITIONS */
} omni_rope_range;

/** Bytes of the rows: (p1 - p0) * rot * 4. */
OMNI_API omni_status omni_rope_table_size(const omni_rope_range* range, size_t* bytes);
/**
 * Writes the rows [p0, p1) to `table`, 4-byte aligned. A table of the context in use grows by a call for the positions that are
 * new: rows do not depend on the range that they are made in. Per frequency j < rot/2 and position p:
 *
 *     f = fp32(1 / fp32(theta^(2j / rot)));   angle = fp32(p * f);   cos and sin of that angle, rounded to fp32
 *
 * as PyTorch forms them in fp32: near position 10^6 the rounding of the angle decides the result. Powers, cosines and sines come
 * from double-precision polynomials of the library, never from libm, so every machine makes the same table. Thread-safe.
 */
OMNI_API omni_status omni_rope_table(const omni_rope_range* range, void* table, size_t bytes);

/** A question to the registry. */
typedef struct omni_rope_query {
  uint32_t size;       /**< sizeof(omni_rope_query) */
  uint16_t type;       /**< of the heads: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t reserved;   /**< 0 */
  uint32_t heads;      /**< heads of a row, 1 or more; query and key heads that lie side by side are rotated in one call */
  uint32_t head_dim;   /**< elements of a head */
  uint32_t rot;        /**< leading dimensions that are rotated: even, 2..head_dim */
  const char* kernel;  /**< a kernel name to force, or NULL */
  const char* max_isa; /**< a tier name that caps this plan only, or NULL */
} omni_rope_query;

/** Arguments of a run. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_rope_args {
  uint32_t size;                 /**< sizeof(omni_rope_args) */
  uint32_t m;                    /**< rows (tokens); 0 writes nothing and needs no pointers */
  void* x;                       /**< [m][heads][head_dim], rotated in place */
  int64_t ldx;                   /**< elements from row to row, >= heads * head_dim; columns beyond are never touched */
  const int32_t* positions;      /**< [m], each in [p0, p1) */
  const void* table;             /**< rows [p0, p1) of omni_rope_table(), made for the plan's rot */
  size_t table_bytes;            /**< at least (p1 - p0) * rot * 4 */
  int64_t p0;                    /**< position of the table's first row */
  int64_t p1;                    /**< one past that of its last */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_rope_args;

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_rope_select(const omni_rope_query* query, omni_plan** plan);

/**
 * Half-split rotation (GPT-NeoX form) of Su et al., "RoFormer", 2021: for j < rot/2, a = x[j], b = x[j + rot/2],
 * x[j] = a * cos - b * sin and x[j + rot/2] = b * cos + a * sin, each product and sum rounded to fp32, then to the type of x. The
 * same bits on every tier. Never allocates; thread-safe; on an error nothing is written: a position outside of the table is
 * OMNI_ERR_RANGE before any row is touched.
 */
OMNI_API omni_status omni_rope_run(const omni_plan* plan, const omni_rope_args* args);

#ifdef __cplusplus
}
#endif
#endif
