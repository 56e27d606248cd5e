// SPDX-License-Identifier: Apache-2.0
// Choosing a row for the operations that need no more than an ISA mask: pack and dequant.
#pragma once

#include <string_view>

#include "kernels/dispatch/kernel.h"

namespace okl {

// The first row of `op` that `allowed` covers and that `accept` takes (a JIT row declines when executable memory is refused); only
// the row called `forced` when that is not empty. nullptr when there is none.
template <typename Accept>
const KernelRow* choose_row(Op op, IsaMask allowed, std::string_view forced, const Accept& accept) {
  for (const KernelRow& row : registry()) {
    if (row.op != op || (row.required & ~allowed) != 0) continue;
    if (!forced.empty() && row.name != forced) continue;
    if (accept(row)) return &row;
  }
  return nullptr;
}

}  // namespace okl
