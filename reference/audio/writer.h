// SPDX-License-Identifier: Apache-2.0
// Speech on its way out: WAV or FLAC in a file, WAV or raw PCM down a pipe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace ref::audio {

enum class Container : uint8_t { kWav, kFlac, kRaw };
enum class SampleFormat : uint8_t { kInt16, kInt24, kFloat };

struct WriteOptions {
  Container container = Container::kWav;
  SampleFormat format = SampleFormat::kInt16;
  int64_t rate = 24000;
};

// Mono. A file appears at its name only when finish() has returned; until then, and after an error, what was there stays.
class Writer {
 public:
  // "-": standard output, as a stream: raw, or WAV whose sizes say that they are not known (0xFFFFFFFF), as players expect of a
  // pipe. Throws OutputError naming the file; Error for a combination that does not exist (FLAC in float, FLAC to a pipe).
  static Writer open(const std::filesystem::path& destination, const WriteOptions& options);
  Writer(Writer&&) noexcept;
  ~Writer();  // without finish(): the file is dropped

  // Samples beyond [-1, 1] are clipped and counted, NaN becomes 0. False when the reader of a pipe has gone. Throws OutputError.
  bool write(std::span<const float> samples);
  void finish();

  int64_t samples() const;
  int64_t clipped() const;

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Round to nearest, ties to even, of x * 32767 clipped to -32767..32767; NaN gives 0. (1.5 -> 32767, -Inf -> -32767)
int16_t to_int16(float sample);

}  // namespace ref::audio
