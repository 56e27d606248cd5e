/* SPDX-License-Identifier: Apache-2.0 */
/** @file headgate.h  One gate for each attention head from the layer's input, and its product with the head's output. */
#ifndef OMNI_HEADGATE_H
#define OMNI_HEADGATE_H

#include <stddef.h>
#include <stdint.h>

#include "omni/layout.h"
#include "omni/linear.h"
#include "omni/parallel.h"
#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What becomes of the gate's sum c. */
typedef enum omni_headgate_activation {
  OMNI_HEADGATE_LINEAR = 0,  /**< c */
  OMNI_HEADGATE_SIGMOID = 1, /**< 1 / (1 + exp(-c)) */
  OMNI_HEADGATE_SILU = 2     /**< c / (1 + exp(-c)) */
} omni_headgate_activation;

/** Most heads of a query. */
#define OMNI_HEADGATE_MOST_HEADS ((uint32_t)1024)

/** A question to the registry. */
typedef struct omni_headgate_query {
  uint32_t size;        /**< sizeof(omni_headgate_query) */
  uint16_t x_type;      /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t weight_type; /**< OMNI_DTYPE_BF16 or OMNI_DTYPE_F32 */
  uint16_t value_type;  /**< of the attention output: OMNI_DTYPE_BF16 or OMNI_DTYPE_F32; OMNI_DTYPE_NONE: gates only */
  uint16_t activation;  /**< omni_headgate_activation */
  uint32_t heads;       /**< 1..OMNI_HEADGATE_MOST_HEADS */
  int64_t k;            /**< elements of a row of x, 1 or more */
  int64_t head_dim;     /**< elements of one head's output, 1 or more; 0 with value_type NONE */
  const char* kernel;   /**< a kernel name to force, or NULL */
  const char* max_isa;  /**< a tier name that caps this plan only, or NULL */
} omni_headgate_query;

/** Arguments of a run. Leading dimensions count elements. All pointers are borrowed for the call and aligned to their elements. */
typedef struct omni_headgate_args {
  uint32_t size;                 /**< sizeof(omni_headgate_args) */
  uint32_t m;                    /**< rows; 0 writes nothing and needs no pointers */
  const void* x;                 /**< [m][k] of x_type: the normed input of the layer */
  int64_t ldx;                   /**< >= k; columns beyond k are never read */
  const void* weights;           /**< what omni_headgate_pack() made, 64-byte aligned */
  size_t weights_bytes;          /**< at least omni_headgate_packed_size() */
  const float* bias;             /**< [heads], added to c before the activation, or NULL */
  float* gates;                  /**< [m][heads] out; may be NULL where there are values */
  int64_t ld_gates;              /**< >= heads; not looked at where gates is NULL */
  const void* values;            /**< [m][heads][head_dim] of value_type: the attention output */
  int64_t ld_values;             /**< >= heads * head_dim */
  void* out;                     /**< [m][heads][head_dim] of value_type: value * gate of its head; may be `values` itself where the
                                      leading dimensions are one, else overlaps nothing */
  int64_t ld_out;                /**< >= heads * head_dim */
  const omni_parallel* parallel; /**< NULL: the process-wide pool. A run too small to gain from threads stays on the calling one */
} omni_headgate_args;

/** Bytes that omni_headgate_pack() writes: about those of the weights. */
OMNI_API omni_status omni_headgate_packed_size(const omni_headgate_query* query, size_t* bytes);
/**
 * Packs weights [heads][k] of weight_type, rows `ld` elements apart, for queries of the same x_type, weight_type, heads and k. With
 * bf16 on both sides weights below 2^-56 become +0, as class dense has it. `packed` is 64-byte aligned and overlaps nothing. The
 * bytes are the same on every machine and for every kernel; they are no file format. Thread-safe.
 */
OMNI_API omni_status omni_headgate_pack(const omni_headgate_query* query, const void* weights, int64_t ld, void* packed,
                                        size_t packed_bytes);

/** Chooses a kernel, a pure function of the machine and the query. Thread-safe. omni_plan_destroy() releases the plan. */
OMNI_API omni_status omni_headgate_select(const omni_headgate_query* query, omni_plan** plan);

/**
 * Per row and head: c = the sum of x[i] * w[head][i] in fp32, in 16 fixed lanes of pairs with bf16 on both sides and as one
 * ascending chain otherwise (docs/numerics.md); gate = activation(c + bias); out = value * gate, rounded once. The same bits on
 * every tier, for any batch and thread count. Never allocates; thread-safe; on an error nothing is written.
 */
OMNI_API omni_status omni_headgate_run(const omni_plan* plan, const omni_headgate_args* args);

#ifdef __cplusplus
}
#endif
#endif
