// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "reference/qwen3_tts/voice/encoder_transformer.h"
#include "reference/qwen3_tts/voice/encoders.h"
#include "reference/qwen3_tts/voice/nearest_entry.h"
#include "reference/qwen3_tts/voice/seanet.h"

namespace ref::tts {
namespace {

constexpr uint32_t kRows = 128;
constexpr int64_t kTaps = 4, kStride = 2;  // of the downsampling

// 25 Hz to 12.5 Hz. What lies beyond either end is the first or the last row.
std::vector<float> downsample(const std::vector<float>& x, int64_t hidden, EncoderContext* encoder) {
  const auto rows = static_cast<int64_t>(x.size()) / hidden, made = (rows + kStride - 1) / kStride;
  const Conv1d conv =
      encoder_conv(encoder->context(), "encoder.downsample.conv", {hidden, hidden, kTaps, 1, kStride}, kRows, false);
  encoder->backend().allocate();
  std::vector<float> out(static_cast<size_t>(made * hidden)), block(static_cast<size_t>((kRows * kStride + kTaps) * hidden));
  for (int64_t done = 0; done < made; done += kRows) {
    const int64_t count = std::min<int64_t>(kRows, made - done), from = done * kStride - (kTaps - kStride);
    for (int64_t i = 0; i < count * kStride + kTaps - kStride; ++i) {
      const int64_t row = std::clamp<int64_t>(from + i, 0, rows - 1);
      std::memcpy(&block[static_cast<size_t>(i * hidden)], &x[static_cast<size_t>(row * hidden)],
                  static_cast<size_t>(hidden) * sizeof(float));
    }
    conv.run(static_cast<uint32_t>(count), block.data(), hidden, &out[static_cast<size_t>(done * hidden)], hidden);
  }
  return out;
}

void see(Observer* observer, const char* name, const std::vector<float>& x, int64_t columns) {
  observe(observer, name, 0, static_cast<int64_t>(x.size()) / columns, columns, OMNI_DTYPE_F32, x.data(), columns);
}

// Both quantisers read the same rows: the second knows nothing of what the first took.
void quantise(const CodecEncoderConfig& config, const std::vector<float>& x, EncoderContext* encoder, std::vector<Frame>* frames,
              Observer* observer) {
  const ModelContext& context = encoder->context();
  const int64_t hidden = config.stack.hidden, dim = config.codebook_dim, rows = static_cast<int64_t>(x.size()) / hidden;
  std::vector<float> inner(static_cast<size_t>(rows * dim));
  int64_t level = 0;
  for (const auto& [name, seen, levels] :
       {std::tuple<const char*, const char*, int64_t>{"semantic", "semantic_in", 1}, {"acoustic", "acoustic_in", kCodebooks - 1}}) {
    const std::string prefix = std::string("encoder.quantizer.") + name + "_residual_vector_quantizer.";
    const Linear projection = context.linear(prefix + "input_proj", dim, hidden, false, OMNI_DTYPE_F32);
    const Plain& books = context.weights.plain(prefix + "codebook", {levels, config.codebook_size, dim});
    if (books.type != OMNI_DTYPE_F32) throw Error(context.weights.name + ": " + prefix + "codebook is not fp32");
    encoder->backend().allocate();
    for (int64_t done = 0; done < rows; done += kRows) {
      const int64_t count = std::min<int64_t>(kRows, rows - done);
      projection.run(static_cast<uint32_t>(count), &x[static_cast<size_t>(done * hidden)], hidden,
                     &inner[static_cast<size_t>(done * dim)], dim);
    }
    see(observer, seen, inner, dim);
    quantise_rows(books, inner.data(), rows, frames->front().data() + level, kCodebooks, &encoder->backend().parallel);
    level += levels;
  }
}

}  // namespace

std::vector<Frame> encode_speech(const ModelWeights& weights, std::span<const float> samples, const EncoderOptions& options,
                                 Observer* observer) {
  need_encoder(weights, "encoder.encoder.layers.0.conv", "speech encoder");
  const CodecEncoderConfig config = read_config(weights.config, weights.name).encoder;
  check_samples(weights, samples, 1);
  EncoderContext encoder(weights, options, kRows);
  SeaNet seanet(config, encoder.context());
  encoder.backend().allocate();
  std::vector<float> x = seanet.run(samples, observer);
  const int64_t hidden = config.stack.hidden;
  run_encoder_transformer(config.stack, &encoder, x.data(), static_cast<int64_t>(x.size()) / hidden);
  see(observer, "encoder_transformer", x, hidden);
  x = downsample(x, hidden, &encoder);
  see(observer, "downsample", x, hidden);
  std::vector<Frame> frames(x.size() / static_cast<size_t>(hidden));
  quantise(config, x, &encoder, &frames, observer);
  return frames;
}

}  // namespace ref::tts
