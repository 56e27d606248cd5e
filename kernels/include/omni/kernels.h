/* SPDX-License-Identifier: Apache-2.0 */
/** @file kernels.h  The registry as data: every kernel there is. */
#ifndef OMNI_KERNELS_H
#define OMNI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One row of the registry. Strings are static. */
typedef struct omni_kernel_info {
  uint32_t size;         /**< sizeof(omni_kernel_info) */
  uint32_t isa_required; /**< OMNI_ISA_* */
  const char* name;      /**< `<op>_<class>_<activation>_<weight format>_<MRxNR>_<isa>`, absent fields left out */
  const char* op;        /**< "gemv", "gemm", "pack", "dequant" */
  const char* numerics;  /**< "group", "torch" or "" */
  const char* isa;       /**< tier name */
  const char* code;      /**< "jit" or "compiled" */
  const char* summary;   /**< one line */
  int32_t usable;        /**< 1 when this machine (or profile) can run it */
} omni_kernel_info;

/** Number of rows. */
OMNI_API size_t omni_kernel_count(void);
/** Row `index`. OMNI_ERR_RANGE beyond the last. */
OMNI_API omni_status omni_kernel_get(size_t index, omni_kernel_info* out);

/**
 * Machine code of a generated kernel that the cache holds, by kernel name (the first configuration found): for disassembly.
 * Copies at most `bytes` bytes; `needed` receives the full size and `address` where the code runs (each may be NULL).
 * OMNI_ERR_UNKNOWN_NAME when none was generated.
 */
OMNI_API omni_status omni_kernel_code(const char* kernel_name, void* buffer, size_t bytes, size_t* needed, uint64_t* address);

#ifdef __cplusplus
}
#endif
#endif
