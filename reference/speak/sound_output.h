// SPDX-License-Identifier: Apache-2.0
// Where samples go: a file, or a pipe whose reader may be slow or gone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "reference/audio/writer.h"

namespace ref::speak {

struct OutputOptions {
  std::string file;     // "-": standard output
  bool stream = false;  // likewise
  std::string stream_format = "wav";
  std::string sample_format = "int16";
};

class SoundOutput {
 public:
  // Throws Failure: neither or both destinations, an ending that is no format, a terminal, a file that cannot be made.
  explicit SoundOutput(const OutputOptions& options);

  bool to_stdout() const { return stdout_; }
  // "wav, int16".
  const std::string& format() const { return format_; }
  // False when nobody reads on, or `interrupted` says so while a reader lets it wait. Throws Failure.
  bool write(std::span<const float> samples, const std::function<bool()>& interrupted);
  // Samples are kept only then. Throws Failure.
  void finish();
  int64_t clipped() const { return writer_->clipped(); }

 private:
  bool stdout_ = false;
  std::string format_;
  std::optional<audio::Writer> writer_;
};

}  // namespace ref::speak
