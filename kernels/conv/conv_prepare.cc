// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_prepare.h"

#include <algorithm>
#include <cstring>

namespace okl {
namespace {

// Inputs [k0, k0 + count) of output row `row`: a piece of each tap that they touch.
template <typename Element>
void gather(const GatherArgs& args, int64_t row, int64_t k0, int64_t count, Element* out) {
  const auto* x = static_cast<const Element*>(args.prepare.x);
  while (count > 0) {
    const int64_t tap = k0 / args.inputs, channel = k0 % args.inputs, piece = std::min(count, args.inputs - channel);
    const Element* from = x + (row * args.stride + tap * args.dilation) * args.prepare.ldx + channel;
    std::memcpy(out, from, static_cast<size_t>(piece) * sizeof(Element));
    out += piece;
    k0 += piece;
    count -= piece;
  }
}

template <typename Element>
void gather_rows(const GatherArgs& args, int64_t first, int64_t last) {
  const DenseRows& rows = args.prepare.rows;
  Element piece[kDenseChunkInputs];
  DensePrepareArgs one = args.prepare;
  one.x = piece;
  for (int64_t row = first; row < last; ++row) {
    for (int64_t chunk = 0; chunk < rows.chunks(); ++chunk) {
      const int64_t k0 = chunk * rows.chunk, count = std::min(rows.chunk, rows.k - k0);
      gather(args, row, k0, count, piece);
      one.rows = {count, rows.chunk, rows.element, 1};
      one.out = args.prepare.out + rows.offset(chunk, row);
      prepare_dense_rows(one, 0, 1);
    }
  }
}

}  // namespace

void gather_conv_rows(const GatherArgs& args, int64_t first, int64_t last) {
  if (args.prepare.x_type == OMNI_DTYPE_F32) return gather_rows<float>(args, first, last);
  gather_rows<uint16_t>(args, first, last);
}

}  // namespace okl
