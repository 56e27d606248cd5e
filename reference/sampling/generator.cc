// SPDX-License-Identifier: Apache-2.0
#include "reference/sampling/generator.h"

#include <sleef.h>

namespace ref {

float Generator::exponential() {
  const uint64_t high = engine_(), low = engine_();
  const uint64_t bits = (high << 32 | low) & ((uint64_t{1} << 53) - 1);
  return static_cast<float>(-Sleef_cinz_log1pd1_u10purec(-static_cast<double>(bits) * 0x1p-53));
}

}  // namespace ref
