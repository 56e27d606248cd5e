// SPDX-License-Identifier: Apache-2.0
// What the formats of omni_format have in common: names, versions, sizes and how a layout id is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "omni/layout.h"

namespace okl {

// "tg4", "torch_avx2", ...; "" for a value that is no format.
std::string_view format_name(omni_format format);
bool is_format(uint32_t value);
// Formats stored as blocks of channels; they have no leading dimension and pad N to a multiple of 16.
bool is_blocked(omni_format format);
uint16_t format_version(omni_format format);

// Elements of a row of a row-major format (bytes or words) for dense storage. 0 for blocked formats.
int64_t dense_ld(omni_format format, int64_t n, int64_t k);
// Rows of a row-major format. 0 for blocked formats.
int64_t storage_rows(omni_format format, int64_t n, int64_t k);
// Bytes of an element of a row-major format; 1 for blocked formats.
int64_t element_bytes(omni_format format);

// Bytes of the codes of n x k in `format` with leading dimension `ld` (0: dense). false: does not fit 63 bits.
// The last row counts only the elements that it needs, so that a sub-matrix of a larger one is accepted.
[[nodiscard]] bool codes_bytes(omni_format format, int64_t n, int64_t k, int64_t ld, int64_t* bytes);

// Bytes of vLLM's W4A8 blocks, whose size depends on the group. false: does not fit 63 bits.
[[nodiscard]] bool vllm_w4a8_bytes(int64_t n, int64_t k, int64_t group, int64_t* bytes);

// Bytes of the scale-and-zero array of tg4 and PyTorch's formats. false: does not fit 63 bits.
[[nodiscard]] bool scales_bytes(int64_t n, int64_t k, int64_t group, int64_t element, int64_t* bytes);

// 32, 64, 128, 256 or k.
bool is_group(int64_t group, int64_t k);

// Bytes of the scale array of any layout. false: does not fit 63 bits.
[[nodiscard]] bool layout_scales_bytes(const omni_layout& layout, int64_t* bytes);

// The checks of omni_layout_check() with `what` in front of the error line. Requires `layout` not NULL.
omni_status check_layout(const omni_layout& layout, const char* what);

}  // namespace okl
