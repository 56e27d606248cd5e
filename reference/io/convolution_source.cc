// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrices.
#include <algorithm>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/shape_text.h"
#include "reference/io/int4_words.h"
#include "reference/io/linear_source.h"
#include "reference/io/pages.h"

namespace ref {
namespace {

// So many bytes of a tensor are read before their pages are let go.
constexpr int64_t kReadBytes = int64_t{1} << 20;

LinearSource find(const Checkpoint& checkpoint, const std::string& name, const std::vector<int64_t>& shape) {
  const TensorView& view = checkpoint.at(name + ".weight", shape);
  const bool dense = view.dtype() == "BF16" || view.dtype() == "F16" || view.dtype() == "F32";
  if (!dense) throw Error(view.where() + " is " + view.dtype() + ", expected BF16 or F16 or F32");
  for (const int64_t extent : shape) {
    if (extent < 1) throw Error(view.where() + " has the shape " + shape_text(shape) + ", which is no convolution");
  }
  LinearSource source;
  source.name = name;
  source.dense = &view;
  return source;
}

// Output channel and phase of a row.
struct TransposedRow {
  int64_t output, phase;
};

}  // namespace

LinearSource find_convolution(const Checkpoint& checkpoint, const std::string& name, int64_t outputs, int64_t inputs,
                              int64_t taps) {
  LinearSource source = find(checkpoint, name, {outputs, inputs, taps});
  source.n = outputs;
  source.k = taps * inputs;
  source.taps = taps;
  source.order = taps == 1 ? RowOrder::kRows : RowOrder::kConvolution;  // one tap: the rows lie as they are wanted
  return source;
}

LinearSource find_transposed(const Checkpoint& checkpoint, const std::string& name, int64_t outputs, int64_t inputs, int64_t taps,
                             int64_t stride) {
  LinearSource source = find(checkpoint, name, {inputs, outputs, stride * taps});
  source.n = stride * outputs;
  source.k = taps * inputs;
  source.taps = taps;
  source.order = RowOrder::kTransposed;
  return source;
}

void read_convolution_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out) {
  const int64_t inputs = source.k / source.taps;
  for (int64_t n = n0; n < n1; ++n, out += source.k) {
    for (int64_t c = 0; c < inputs; ++c) {
      for (int64_t j = 0; j < source.taps; ++j) out[j * inputs + c] = load_float(*source.dense, n * source.k + c * source.taps + j);
    }
  }
}

// Channel by channel, in the order of the tensor.
void read_transposed_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out) {
  const int64_t inputs = source.k / source.taps, outputs = source.dense->shape()[1], kernel = source.dense->shape()[2];
  const int64_t stride = kernel / source.taps, channel = outputs * kernel;
  std::vector<TransposedRow> rows;
  for (int64_t n = n0; n < n1; ++n) rows.push_back({n % outputs, n / outputs});
  const auto channel_bytes = source.dense->bytes().size() / static_cast<size_t>(inputs);
  const int64_t step = std::max<int64_t>(1, kReadBytes / static_cast<int64_t>(channel_bytes));
  for (int64_t c0 = 0; c0 < inputs; c0 += step) {
    const int64_t c1 = std::min(inputs, c0 + step);
    for (int64_t c = c0; c < c1; ++c) {
      float* at = out + c;
      for (const TransposedRow& row : rows) {
        const int64_t first = c * channel + row.output * kernel + row.phase;
        for (int64_t j = 0; j < source.taps; ++j)
          at[j * inputs] = load_float(*source.dense, first + stride * (source.taps - 1 - j));
        at += source.k;
      }
    }
    release_pages(
        source.dense->bytes().subspan(static_cast<size_t>(c0) * channel_bytes, static_cast<size_t>(c1 - c0) * channel_bytes));
  }
}

}  // namespace ref
