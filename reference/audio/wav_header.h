// SPDX-License-Identifier: Apache-2.0
// The beginning of a WAV stream whose length nobody knows yet.
#pragma once

#include <cstdint>
#include <string>

#include "reference/audio/writer.h"

namespace ref::audio {

// Mono. Both sizes, of RIFF and of data, are 0xFFFFFFFF, which players, ffmpeg and sox take as "until the stream ends". 44 bytes;
// 58 in float, whose format chunk has its extension and whose `fact` says 0xFFFFFFFF too:
//
//     integers   "RIFF" FFFFFFFF "WAVE" | "fmt " 16  tag 1, channels 1, rate, byte rate, block, bits                 | "data"
//     FFFFFFFF float      "RIFF" FFFFFFFF "WAVE" | "fmt " 18  tag 3, ..., bits, 0 | "fact" 4 FFFFFFFF                         |
//     "data" FFFFFFFF
std::string streaming_wav_header(SampleFormat format, int64_t rate);

}  // namespace ref::audio
