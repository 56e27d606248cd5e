// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/sound_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "reference/cli/failure.h"
#include "reference/cli/model.h"

namespace ref::speak {
namespace {

using cli::Exit;
using cli::Failure;

// A pipe that poll() calls writable takes PIPE_BUF bytes, 4096, without waiting: so many floats.
constexpr size_t kPipeSamples = 1024;

audio::SampleFormat sample_format(const std::string& name) {
  return name == "float"   ? audio::SampleFormat::kFloat
         : name == "int24" ? audio::SampleFormat::kInt24
                           : audio::SampleFormat::kInt16;
}

audio::Container container_of(const std::string& file) {
  std::string ending = std::filesystem::path(file).extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (ending == ".wav") return audio::Container::kWav;
  if (ending == ".flac") return audio::Container::kFlac;
  throw Failure(Exit::kUsage, fmt::format("--output {}: ends neither in .wav nor in .flac", file));
}

const char* container_name(audio::Container container) {
  return container == audio::Container::kWav ? "wav" : container == audio::Container::kFlac ? "flac" : "raw";
}

// False when `interrupted` says so first.
bool wait_for_reader(const std::function<bool()>& interrupted) {
  for (;;) {
    if (interrupted && interrupted()) return false;
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    const int ready = ::poll(&output, 1, 50);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // what is wrong, the write tells
  }
}

}  // namespace

SoundOutput::SoundOutput(const OutputOptions& options) {
  if (options.stream && !options.file.empty() && options.file != "-") {
    throw Failure(Exit::kUsage, fmt::format("--output {}: --stream writes to standard output", options.file));
  }
  if (!options.stream && options.file.empty()) throw Failure(Exit::kUsage, "no output: give -o FILE, or --stream");
  stdout_ = options.stream || options.file == "-";
  if (stdout_ && isatty(STDOUT_FILENO) != 0) {
    throw Failure(Exit::kUsage, "--stream: standard output is a terminal; give -o FILE, or pipe it: --stream | aplay");
  }
  audio::WriteOptions write;
  write.format = sample_format(options.sample_format);
  write.container = !stdout_                         ? container_of(options.file)
                    : options.stream_format == "raw" ? audio::Container::kRaw
                                                     : audio::Container::kWav;
  if (write.container == audio::Container::kFlac && write.format == audio::SampleFormat::kFloat) {
    throw Failure(Exit::kUsage, "--sample-format float: FLAC has no floats; int16 or int24");
  }
  format_ = fmt::format("{}, {}", container_name(write.container), options.sample_format);
  cli::guarded(Exit::kOutput, [&] { writer_.emplace(audio::Writer::open(stdout_ ? "-" : options.file, write)); });
}

bool SoundOutput::write(std::span<const float> samples, const std::function<bool()>& interrupted) {
  return cli::guarded(Exit::kOutput, [&] {
    if (!stdout_) return writer_->write(samples);
    for (size_t at = 0; at < samples.size(); at += kPipeSamples) {
      if (!wait_for_reader(interrupted)) return false;
      if (!writer_->write(samples.subspan(at, std::min(kPipeSamples, samples.size() - at)))) return false;
    }
    return true;
  });
}

void SoundOutput::finish() {
  cli::guarded(Exit::kOutput, [&] { writer_->finish(); });
}

}  // namespace ref::speak
