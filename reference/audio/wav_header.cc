// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/wav_header.h"

namespace ref::audio {
namespace {

constexpr uint32_t kUnknown = 0xFFFFFFFF;

void append(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

}  // namespace

std::string streaming_wav_header(SampleFormat format, int64_t rate) {
  const bool real = format == SampleFormat::kFloat;
  const uint64_t bytes = real ? 4 : format == SampleFormat::kInt24 ? 3 : 2;
  std::string out = "RIFF";
  append(&out, kUnknown, 4);
  out += "WAVEfmt ";
  append(&out, real ? 18 : 16, 4);
  append(&out, real ? 3 : 1, 2);
  append(&out, 1, 2);
  append(&out, static_cast<uint64_t>(rate), 4);
  append(&out, static_cast<uint64_t>(rate) * bytes, 4);
  append(&out, bytes, 2);
  append(&out, 8 * bytes, 2);
  if (real) {
    append(&out, 0, 2);
    out += "fact";
    append(&out, 4, 4);
    append(&out, kUnknown, 4);
  }
  out += "data";
  append(&out, kUnknown, 4);
  return out;
}

}  // namespace ref::audio
