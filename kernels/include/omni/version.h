/* SPDX-License-Identifier: Apache-2.0 */
/** @file version.h  Library version. */
#ifndef OMNI_VERSION_H
#define OMNI_VERSION_H

/** Changes with every incompatible change from 1.0 on. The SOVERSION. */
#define OMNI_VERSION_MAJOR 0
/** Before 1.0 a new minor version may break the interface; afterwards it adds to it. */
#define OMNI_VERSION_MINOR 1
/** A new patch level leaves the interface as it is. */
#define OMNI_VERSION_PATCH 0

#if defined(__GNUC__)
/** Marks the functions that the shared library exports; everything else is hidden. */
#define OMNI_API __attribute__((visibility("default")))
#else
#define OMNI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the library that is linked, "major.minor.patch". Static storage, never NULL. Thread-safe. */
OMNI_API const char* omni_version(void);

#ifdef __cplusplus
}
#endif
#endif
