/* SPDX-License-Identifier: Apache-2.0 */
/** @file status.h  Result codes and error text. */
#ifndef OMNI_STATUS_H
#define OMNI_STATUS_H

#include "omni/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What every entry returns. Values never change meaning; new ones are added at the end. */
typedef enum omni_status {
  OMNI_OK = 0,
  OMNI_ERR_NULL = 1,          /**< a required pointer is NULL */
  OMNI_ERR_STRUCT_SIZE = 2,   /**< the `size` field is smaller than the first published struct */
  OMNI_ERR_SHAPE = 3,         /**< N, K or M is negative, or K is 0 where a row is needed */
  OMNI_ERR_GROUP = 4,         /**< group size is not 32, 64, 128, 256 or K */
  OMNI_ERR_ALIGNMENT = 5,     /**< a pointer is less aligned than its documentation asks */
  OMNI_ERR_STRIDE = 6,        /**< a leading dimension is smaller than the row */
  OMNI_ERR_OVERFLOW = 7,      /**< a product of sizes does not fit 63 bits */
  OMNI_ERR_RANGE = 8,         /**< a portion or window lies outside the matrix */
  OMNI_ERR_TYPE = 9,          /**< unknown or unsupported element type */
  OMNI_ERR_LAYOUT = 10,       /**< layout id is malformed, of another version, or not what the operation takes */
  OMNI_ERR_CODE = 11,         /**< a weight code is above 15 */
  OMNI_ERR_BUFFER_SIZE = 12,  /**< a buffer is smaller than the operation needs */
  OMNI_ERR_NO_KERNEL = 13,    /**< no kernel of the registry serves the query on this machine */
  OMNI_ERR_UNKNOWN_NAME = 14, /**< a name (kernel, ISA, format, class) is unknown */
  OMNI_ERR_OUT_OF_MEMORY = 15,
  OMNI_ERR_JIT = 16,         /**< executable memory was refused and the query allows no compiled kernel */
  OMNI_ERR_ENVIRONMENT = 17, /**< an OMNI_* environment variable has an unknown value */
  OMNI_ERR_PROFILE = 18,     /**< a machine profile cannot be read */
  OMNI_ERR_INEXACT = 19,     /**< a lossless conversion was asked for and is not possible */
  OMNI_ERR_STATE = 20        /**< a setting comes too late, or a call is out of order */
} omni_status;

/** Name of a status, e.g. "OMNI_ERR_GROUP"; "OMNI_ERR_?" for a value this version does not know. Thread-safe. */
OMNI_API const char* omni_status_name(omni_status status);

/**
 * One line about the last failure on the calling thread, naming the argument and its value; "" when the last call succeeded.
 * The text is owned by the library and lives until the next omni call on the same thread.
 */
OMNI_API const char* omni_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
