// SPDX-License-Identifier: Apache-2.0
// A packed matrix of a model as fp32 values [n][k], by the definition of its format.
#pragma once

#include <cstring>
#include <stdexcept>
#include <vector>

#include "omni/omni.hpp"
#include "reference/core/half.h"
#include "reference/core/model_weights.h"

namespace ref {

inline float scale_at(const Matrix& matrix, int64_t index) {
  if (matrix.layout.scale_type == OMNI_DTYPE_F32) {
    float value;
    std::memcpy(&value, matrix.scales.data() + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, matrix.scales.data() + 2 * index, 2);
  return widen_bf16(bits);
}

// One code a byte, as they are packed: inputs in the order of the permutation.
inline std::vector<uint8_t> unpack_codes(const Matrix& matrix) {
  const omni_layout& layout = matrix.layout;
  std::vector<uint8_t> codes(static_cast<size_t>(layout.n * layout.k));
  auto args = omni::sized<omni_repack_args>();
  args.source_format = layout.format;
  args.destination_format = layout.format == OMNI_FORMAT_W8S ? OMNI_FORMAT_CODES_S8 : OMNI_FORMAT_CODES_U8;
  args.n = layout.n;
  args.k = layout.k;
  args.source = matrix.codes.data();
  args.source_bytes = matrix.codes.size();
  args.destination = codes.data();
  args.destination_bytes = codes.size();
  omni::repack(args);
  return codes;
}

inline std::vector<float> unpack_matrix(const Matrix& matrix) {
  const omni_layout& layout = matrix.layout;
  std::vector<float> out(static_cast<size_t>(layout.n * layout.k));
  if (layout.format == OMNI_FORMAT_W16 || layout.format == OMNI_FORMAT_W32) {
    auto args = omni::sized<omni_unpack_dense_args>();
    args.out_type = OMNI_DTYPE_F32;
    args.layout = layout;
    args.weights = matrix.codes.data();
    args.weights_bytes = matrix.codes.size();
    args.n1 = layout.n;
    args.out = out.data();
    args.out_bytes = out.size() * 4;
    omni::check(omni_unpack_dense(&args));
    return out;
  }
  const std::vector<uint8_t> codes = unpack_codes(matrix);
  const int64_t groups = (layout.k + layout.group - 1) / layout.group;
  const size_t width = layout.scale_type == OMNI_DTYPE_F32 ? 4 : 2;
  for (int64_t n = 0; n < layout.n; ++n) {
    for (int64_t i = 0; i < layout.k; ++i) {
      const int64_t cell = i / layout.group * layout.n + n;
      const auto code = static_cast<int>(codes[static_cast<size_t>(n * layout.k + i)]);
      float value;
      if (layout.format == OMNI_FORMAT_TG4) {
        value = static_cast<float>(code - 8) * scale_at(matrix, 2 * cell) + scale_at(matrix, 2 * cell + 1);
      } else if (layout.format == OMNI_FORMAT_W8S) {
        value = static_cast<float>(static_cast<int8_t>(code)) * scale_at(matrix, cell);
      } else {
        const bool zeros = (layout.flags & OMNI_LAYOUT_ZEROS) != 0;
        const int zero =
            zeros ? std::to_integer<int>(matrix.scales[static_cast<size_t>(groups * layout.n) * width + static_cast<size_t>(cell)])
                  : 8;
        value = static_cast<float>(code - zero) * scale_at(matrix, cell);
      }
      const int64_t input = matrix.permutation.empty() ? i : matrix.permutation[static_cast<size_t>(i)];
      out[static_cast<size_t>(n * layout.k + input)] = value;
    }
  }
  return out;
}

}  // namespace ref
