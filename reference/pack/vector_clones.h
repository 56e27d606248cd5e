// SPDX-License-Identifier: Apache-2.0
// Loops of a quantiser run for minutes on a large model: one copy of the function for each width of vectors, chosen at start.
// Lanes are explicit and nothing is contracted, so every copy has the same bits.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define REF_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define REF_VECTOR_CLONES
#endif
