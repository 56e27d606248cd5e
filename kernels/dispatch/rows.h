// SPDX-License-Identifier: Apache-2.0
// Choosing a row for the operations that need no more than an ISA mask: pack and dequant.
#pragma once

#include <string_view>

#include "kernels/api/error.h"
#include "kernels/dispatch/kernel.h"

namespace okl {

struct RowChoice {
  const KernelRow* row = nullptr;       // nullptr: none can serve
  const KernelRow* declined = nullptr;  // a better one that could have, if executable memory were not refused
};

// The first row of `op` that `allowed` covers and that `accept` takes; only the row called `forced` when that is not empty.
template <typename Accept>
RowChoice choose_row(Op op, IsaMask allowed, std::string_view forced, const Accept& accept) {
  RowChoice choice;
  for (const KernelRow& row : registry()) {
    if (row.op != op || (row.required & ~allowed) != 0) continue;
    if (!forced.empty() && row.name != forced) continue;
    if (accept(row)) {
      choice.row = &row;
      break;
    }
    if (choice.declined == nullptr) choice.declined = &row;
  }
  return choice;
}

// OMNI_OK, with a remark for omni_last_error() when a compiled row stands in for a generated one.
inline omni_status succeed_by(const RowChoice& choice) {
  if (choice.declined == nullptr) return succeed();
  return succeed_with("%s serves for %s: executable memory is refused", choice.row->name.data(), choice.declined->name.data());
}

}  // namespace okl
