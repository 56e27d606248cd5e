// SPDX-License-Identifier: Apache-2.0
// The reference implementation's way to decode, for parity with it, and frames of flat lists of ids.
#include <algorithm>

#include "reference/core/error.h"
#include "reference/qwen3_tts/codec/decoder.h"

namespace ref::tts {

std::vector<float> decode_chunked(CodecDecoder* decoder, std::span<const Frame> frames, int64_t chunk, int64_t context) {
  if (chunk < 1) throw Error("codec: chunks of " + std::to_string(chunk) + " frames");
  if (context < 0) throw Error("codec: a context of " + std::to_string(context) + " frames");
  const auto count = static_cast<int64_t>(frames.size());
  std::vector<float> result(static_cast<size_t>(count * kFrameSamples)), part;
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t size = std::min(chunk, count - first);
    // All there is where there is less.
    const int64_t before = std::min(context, first);
    decoder->reset();
    part.resize(static_cast<size_t>((before + size) * kFrameSamples));
    decoder->decode(frames.subspan(static_cast<size_t>(first - before), static_cast<size_t>(before + size)), part);
    std::copy(part.begin() + before * kFrameSamples, part.end(), result.begin() + first * kFrameSamples);
  }
  decoder->reset();
  return result;
}

std::vector<Frame> frames_of(std::span<const int32_t> ids, int64_t codebook_size) {
  if (ids.size() % kCodebooks != 0) {
    throw Error("codec: " + std::to_string(ids.size()) + " ids are no multiple of the " + std::to_string(kCodebooks) +
                " codes of a frame");
  }
  std::vector<Frame> frames(ids.size() / kCodebooks);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= codebook_size) {
      throw Error("codec: id " + std::to_string(ids[i]) + " of frame " + std::to_string(i / kCodebooks) + ", codebook " +
                  std::to_string(i % kCodebooks) + " is outside of 0.." + std::to_string(codebook_size - 1));
    }
    frames[i / kCodebooks][i % kCodebooks] = ids[i];
  }
  return frames;
}

}  // namespace ref::tts
