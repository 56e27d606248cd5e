// SPDX-License-Identifier: Apache-2.0
// Cuts a portion of a run (row tiles by channels) into kernel calls.
#pragma once

#include "kernels/gemv/tg4_plan.h"

namespace okl {

// Scratch of one portion of m rows; 0 where no panel is used.
size_t tg4_scratch_bytes(const LinearCodeSet& code, const LinearConfig& config, uint32_t m);

// Tiles [first_tile, last_tile) of prepared rows by channels [n0, n1).
void run_tg4(const Tg4Plan& plan, const omni_linear_args& args, uint32_t first_tile, uint32_t last_tile, int64_t n0, int64_t n1,
             void* scratch);

}  // namespace okl
