// SPDX-License-Identifier: Apache-2.0
// The arithmetic of AVX-VNNI on 4-byte lanes. Source: Intel SDM volume 2, VPDPBUSD to VPDPWSSDS.
#pragma once

#include "jit/amx_model/instruction.h"
#include "jit/amx_model/vector_frame.h"

namespace okl::amx_model {

// `sum` plus the products of each lane: unsigned bytes of a with signed bytes of b, or signed words of both. The S forms saturate
// the 32-bit result, the others wrap. `bytes` is 16 or 32.
void vector_dot(Opcode opcode, VectorBytes& sum, const VectorBytes& a, const VectorBytes& b, int bytes);

}  // namespace okl::amx_model
