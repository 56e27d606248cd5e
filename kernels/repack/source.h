// SPDX-License-Identifier: Apache-2.0
// Reading codes of any format into a tile.
#pragma once

#include <cstdint>

#include "kernels/repack/code_tile.h"
#include "omni/layout.h"

namespace okl {

// Fills columns [column, column + inputs.count) of the tile's rows [0, channels) with channels [channel, channel + channels) of the
// source. Reads no nibble that belongs to no (channel, input). Returns the OR of all codes read, above 15 only when the format can
// hold such codes. `channel` is a multiple of 64.
uint32_t read_codes(omni_format format, const CodeView& view, const void* source, int64_t channel, int64_t channels,
                    InputRange inputs, CodeTile* tile, int64_t column);

// One code of a format that can hold more than 15 (u8, i32), as it is.
uint32_t read_wide_code(omni_format format, const CodeView& view, const void* source, int64_t channel, int64_t input);

}  // namespace okl
