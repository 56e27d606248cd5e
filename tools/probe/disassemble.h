// SPDX-License-Identifier: Apache-2.0
// Machine code of a generated kernel as Intel-syntax text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/common/shapes.h"

namespace probe {

// Has `kernel` generated (a linear one for `shape` and `m` rows, by default 1, for a kernel of many rows 16) and returns one line
// per instruction: address, bytes, text. Throws Failure: an unknown or compiled kernel is a usage error, a refusal the library's.
std::string disassemble(const std::string& kernel, const tools::Shape& shape, std::optional<uint32_t> m);

}  // namespace probe
