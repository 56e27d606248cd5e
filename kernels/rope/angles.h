// SPDX-License-Identifier: Apache-2.0
// Frequencies, cosines and sines of rope tables, in double precision by polynomials of the library: a table must be the same on
// every machine, and libm's last bits are not.
#pragma once

#include <cstdint>

namespace okl {

// fp32(1 / fp32(theta^(2j / rot))), theta > 1, 0 <= 2j < rot.
float rope_frequency(double theta, uint32_t j, uint32_t rot);

struct CosSin {
  float cos, sin;
};
// Of an angle in [0, 2^24), each rounded once from a value that is good to 2^-50.
CosSin rope_cos_sin(float angle);

}  // namespace okl
