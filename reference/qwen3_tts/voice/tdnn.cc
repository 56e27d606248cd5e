// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/tdnn.h"

#include <algorithm>
#include <cstring>

namespace ref::tts {

Tdnn::Tdnn(const ModelContext& context, const std::string& name, int64_t inputs, int64_t outputs, int64_t taps, int64_t dilation,
           Naming naming)
    : conv_(encoder_conv(context, naming == kConv ? name + ".conv" : name, {inputs, outputs, taps, dilation, 1}, kBlock)),
      relu_(OMNI_ACTIVATION_RELU, outputs, context),
      padded_(static_cast<size_t>(taps == 1 ? 0 : (kBlock + conv_.shape().history()) * inputs)) {}

void Tdnn::run(int64_t rows, const TimeRows& x, const TimeRows& y, bool relu) {
  const int64_t inputs = conv_.shape().inputs, pad = padding(), last = rows - 1;
  for (int64_t done = 0; done < rows; done += kBlock) {
    const int64_t count = std::min(kBlock, rows - done);
    TimeRows from = {x.at(done), x.ld};
    if (pad > 0) {
      from = {padded_.data(), inputs};
      for (int64_t i = 0; i < count + 2 * pad; ++i) {
        int64_t row = done + i - pad;
        row = row < 0 ? -row : row > last ? 2 * last - row : row;
        std::memcpy(from.at(i), x.at(row), static_cast<size_t>(inputs) * sizeof(float));
      }
    }
    conv_.run(static_cast<uint32_t>(count), from.data, from.ld, y.at(done), y.ld);
    if (relu) relu_.run(count, y.at(done), y.ld, y.at(done), y.ld);
  }
}

}  // namespace ref::tts
