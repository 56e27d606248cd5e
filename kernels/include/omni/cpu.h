/* SPDX-License-Identifier: Apache-2.0 */
/** @file cpu.h  What this machine is: ISA flags, caches, cores, and settings read once at initialisation. */
#ifndef OMNI_CPU_H
#define OMNI_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "omni/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of an ISA mask. A bit is set only when the processor has it and the operating system saves its state. */
enum {
  OMNI_ISA_AVX2 = 1u << 0,
  OMNI_ISA_FMA = 1u << 1,
  OMNI_ISA_F16C = 1u << 2,
  OMNI_ISA_AVX_VNNI = 1u << 3, /**< the VEX form */
  OMNI_ISA_AVX512F = 1u << 4,
  OMNI_ISA_AVX512BW = 1u << 5,
  OMNI_ISA_AVX512DQ = 1u << 6,
  OMNI_ISA_AVX512VL = 1u << 7,
  OMNI_ISA_AVX512VBMI = 1u << 8,
  OMNI_ISA_AVX512VNNI = 1u << 9,
  OMNI_ISA_AVX512BF16 = 1u << 10,
  OMNI_ISA_AMX_TILE = 1u << 11,
  OMNI_ISA_AMX_INT8 = 1u << 12,
  OMNI_ISA_AMX_BF16 = 1u << 13,
  OMNI_ISA_GFNI = 1u << 14,
  OMNI_ISA_BMI2 = 1u << 15
};

/** Bits of omni_machine.traits: measured facts about a microarchitecture that steer selection, never results. */
enum {
  /** VDPBF16PS runs at half the rate of two FMAs or less (Intel through Granite Rapids: 86 against 177 GFLOP/s a core
   *  measured on Emerald Rapids), so that FMA kernels win when compute bound. */
  OMNI_TRAIT_SLOW_BF16_DOT = 1u << 0,
  /** The start-up self-test found a VDPBF16PS that disagrees with the contract; its tier is off. */
  OMNI_TRAIT_BF16_DOT_DEMOTED = 1u << 1
};

/** A machine as kernel selection sees it. Selection is a pure function of this struct and the query. */
typedef struct omni_machine {
  uint32_t size;         /**< sizeof(omni_machine) */
  uint32_t isa;          /**< OMNI_ISA_* after OMNI_MAX_ISA */
  uint32_t isa_hardware; /**< before it */
  uint32_t traits;       /**< OMNI_TRAIT_* */
  uint32_t cores_online; /**< logical processors that are online */
  uint32_t cores_usable; /**< after affinity, cgroup quota and performance cores: the default thread count */
  uint64_t l1d_bytes;    /**< of one core; 0 when unknown */
  uint64_t l2_bytes;     /**< of one core; 0 when unknown */
  uint64_t l3_bytes;     /**< last-level cache that one core can use; 0 when unknown */
  char vendor[16];       /**< "GenuineIntel", "AuthenticAMD", ... */
  char name[64];         /**< processor brand string */
  char amx_reason[96];   /**< why AMX is not usable; "" when it is */
} omni_machine;

/** The machine that the library runs on (or the profile set by omni_set_profile_json). Thread-safe. */
OMNI_API omni_status omni_get_machine(omni_machine* out);
/**
 * The same as a JSON profile, NUL-terminated. `needed` receives the size with the NUL; bytes 0 only asks for it, fewer than it are
 * OMNI_ERR_BUFFER_SIZE. Thread-safe.
 */
OMNI_API omni_status omni_get_profile_json(char* text, size_t bytes, size_t* needed);
/**
 * Replaces the probe by a profile written by `omni-probe --json` (emulation: selection and listings only; a plan made for an ISA
 * that the hardware lacks is refused when it is run). NULL restores the probe. OMNI_ERR_PROFILE with the offending key.
 */
OMNI_API omni_status omni_set_profile_json(const char* json);
/**
 * Caps the ISA by tier name: "portable", "avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16", "amxint8", "amxbf16"; NULL or ""
 * removes the cap. The same as OMNI_MAX_ISA. OMNI_ERR_UNKNOWN_NAME otherwise. Plans made before keep their kernels.
 */
OMNI_API omni_status omni_set_max_isa(const char* tier);
/** Forces kernels by name where they can serve, as OMNI_KERNEL; NULL or "" ends it. OMNI_ERR_UNKNOWN_NAME when no row has it. */
OMNI_API omni_status omni_set_kernel(const char* kernel_name);
/**
 * Trace to a callback: one line per dispatch decision, generated kernel and fallback; as OMNI_VERBOSE=1, which uses stderr. NULL
 * ends it; afterwards no call is running. Calls are serialised. OMNI_ERR_STATE from inside the callback.
 */
typedef void (*omni_trace_fn)(void* context, const char* line);
/** Sets the trace callback; NULL ends it. `fn` may be called from any thread and must not call the library. */
OMNI_API omni_status omni_set_trace(omni_trace_fn fn, void* context);
/**
 * Names generated kernels for profilers (docs/jit.md), as OMNI_JIT_PROFILE: a comma list of "perfmap", "jitdump" and "jitdump=DIR".
 * Kernels generated before are written, too. NULL or "" ends it. OMNI_ERR_UNKNOWN_NAME for an unknown word, or when a file cannot
 * be made; then nothing changes.
 */
OMNI_API omni_status omni_set_jit_profile(const char* outputs);
/**
 * Reads OMNI_MAX_ISA, OMNI_KERNEL, OMNI_NUM_THREADS, OMNI_VERBOSE and OMNI_JIT_PROFILE. Runs by itself on first use; calling it is
 * how a program learns early of OMNI_ERR_ENVIRONMENT. The environment is not read again.
 */
OMNI_API omni_status omni_initialize(void);

#ifdef __cplusplus
}
#endif
#endif
