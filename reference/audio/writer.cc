// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "reference/audio/samples.h"
#include "reference/audio/sink.h"
#include "reference/core/error.h"

namespace ref::audio {
namespace {

constexpr size_t kBlock = 4096;
constexpr int64_t kMostRate = 655350;  // of FLAC

// Devices and named pipes have no other name to be staged at.
bool is_stream(const std::filesystem::path& destination) {
  struct stat status {};
  return ::stat(destination.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::unique_ptr<Sink> open_sink(const std::filesystem::path& destination, const WriteOptions& options) {
  const bool out = destination == "-", stream = out || is_stream(destination);
  const std::string name = out ? "standard output" : destination.string();
  const bool flac = options.container == Container::kFlac;
  if (flac && options.format == SampleFormat::kFloat) throw Error(name + ": FLAC has no float samples, only 16 and 24 bits");
  if (flac && stream) throw Error(name + ": FLAC needs a file, as its header is written last; a stream is WAV or raw");
  if (options.rate < 1 || options.rate > kMostRate) {
    throw Error(name + ": a rate of " + std::to_string(options.rate) + " Hz is not within 1.." + std::to_string(kMostRate));
  }
  if (options.container == Container::kRaw && !stream) {
    throw Error(name + ": raw samples go to standard output or a pipe, a file is WAV or FLAC");
  }
  if (!stream) return file_sink(destination, options);
  if (out) return stream_sink(STDOUT_FILENO, false, name, options);
  const int descriptor = ::open(destination.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) throw OutputError(name + ": cannot be opened (" + std::strerror(errno) + ")");
  return stream_sink(descriptor, true, name, options);
}

}  // namespace

int16_t to_int16(float sample) { return static_cast<int16_t>(to_integer(sample, 32767.0)); }

struct Writer::State {
  std::unique_ptr<Sink> sink;  // none after finish()
  int64_t samples = 0, clipped = 0;
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Writer Writer::open(const std::filesystem::path& destination, const WriteOptions& options) {
  auto state = std::make_unique<State>();
  state->sink = open_sink(destination, options);
  return Writer(std::move(state));
}

bool Writer::write(std::span<const float> samples) {
  if (!state_->sink) throw Error("audio: samples behind the end of a finished file");
  std::array<float, kBlock> block;
  bool read = true;
  while (!samples.empty() && read) {
    const auto part = samples.first(std::min(samples.size(), kBlock));
    std::ranges::transform(part, block.begin(), clean);
    state_->clipped += std::ranges::count_if(part, is_clipped);
    state_->samples += static_cast<int64_t>(part.size());
    read = state_->sink->write(std::span(block).first(part.size()));
    samples = samples.subspan(part.size());
  }
  return read;
}

void Writer::finish() {
  if (!state_->sink) return;
  state_->sink->finish();
  state_->sink.reset();
}

int64_t Writer::samples() const { return state_->samples; }
int64_t Writer::clipped() const { return state_->clipped; }

}  // namespace ref::audio
