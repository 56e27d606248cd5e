// SPDX-License-Identifier: Apache-2.0
// Reads the values of a source without keeping its pages: what bf16 can hold, and pages let go once they were read.
#pragma once

#include <cstdint>

#include "reference/io/linear_source.h"
#include "reference/io/pages.h"

namespace ref {

// Most bytes that packing holds beyond the result, the scale arrays of one matrix and a GPTQ Hessian: slices are cut to it.
inline constexpr int64_t kSliceBytes = int64_t{32} << 20;

struct ValueScan {
  bool bf16_exact = true;  // every value is a bf16 value
  bool small = false;      // some value other than zero is below 2^-56 in magnitude: bf16 rows need it scrubbed
};
// Of a dense source.
ValueScan scan_values(const LinearSource& source);

// All pages of a source: planning reads what checks need, packing reads them again.
void release_pages(const LinearSource& source);

}  // namespace ref
