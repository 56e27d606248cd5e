// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/reader.h"

#include <fcntl.h>
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "reference/audio/level_meter.h"
#include "reference/audio/resampler.h"
#include "reference/core/error.h"

namespace ref::audio {
namespace {

// What is read at once, whatever a header says about the length.
constexpr int64_t kBlockValues = 1 << 16;
constexpr int64_t kLeastRate = 4000, kMostRate = 768000;
constexpr double kGoodSeconds = 3;  // of a reference: shorter ones work, but not well

struct Closer {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using File = std::unique_ptr<SNDFILE, Closer>;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

// libsndfile's words as part of a line.
std::string reason(SNDFILE* file) {
  std::string text = sf_strerror(file);
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

// By descriptor, so that only the content says what it is: by name libsndfile would believe the extension.
File open_file(const std::filesystem::path& path, SF_INFO* info) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Error(std::string("cannot be opened (") + std::strerror(errno) + ")");
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error("is no file");
  }
  File file(sf_open_fd(descriptor, SFM_READ, info, SF_TRUE));  // closes the descriptor, also when it fails
  if (!file) throw Error("is no audio that can be read (" + reason(nullptr) + ")");
  if (info->channels < 1) throw Error("has no channels");
  if (info->samplerate < kLeastRate || info->samplerate > kMostRate) {
    throw Error("has a rate of " + std::to_string(info->samplerate) + " Hz, which is not within " + std::to_string(kLeastRate) +
                ".." + std::to_string(kMostRate));
  }
  return file;
}

class Reader {
 public:
  Reader(const std::filesystem::path& path, const ReadOptions& options)
      : options_(options),
        file_(open_file(path, &info_)),
        meter_(info_.channels),
        resampler_(info_.samplerate, options.rate),
        most_frames_(static_cast<int64_t>(std::ceil(options.most_seconds * info_.samplerate))) {}

  Recording read() {
    Recording recording;
    recording.source_rate = info_.samplerate;
    recording.source_channels = info_.channels;
    while (read_block(&recording)) {
    }
    check_length(&recording);
    meter_.check();
    resampler_.finish(&recording.samples);
    meter_.warn(&recording.warnings);
    warn_of_gaps(recording.samples, options_.rate, &recording.warnings);
    return recording;
  }

 private:
  bool read_block(Recording* recording) {
    const int64_t channels = info_.channels;
    const int64_t wanted = std::min(std::max<int64_t>(kBlockValues / channels, 1), most_frames_ - frames_);
    if (wanted == 0) return false;
    values_.resize(static_cast<size_t>(wanted * channels));
    const int64_t got = sf_readf_float(file_.get(), values_.data(), wanted);
    if (got <= 0) return false;
    const auto values = std::span(values_).first(static_cast<size_t>(got * channels));
    meter_.see_channels(values);
    mix(values);
    meter_.see_mono(mono_);
    resampler_.process(mono_, &recording->samples);
    frames_ += got;
    return true;
  }

  // The mean of the channels, in their order.
  void mix(std::span<const float> values) {
    const auto channels = static_cast<size_t>(info_.channels);
    mono_.resize(values.size() / channels);
    for (size_t i = 0; i < mono_.size(); ++i) {
      float sum = 0;
      for (size_t c = 0; c < channels; ++c) sum += values[i * channels + c];
      mono_[i] = channels == 1 ? sum : sum / static_cast<float>(channels);
    }
  }

  void check_length(Recording* recording) {
    const double seconds = static_cast<double>(frames_) / info_.samplerate;
    if (frames_ == 0) throw Error("has no samples");
    if (seconds < options_.least_seconds) {
      throw Error("is " + seconds_text(seconds) + " long, too short: at least " + seconds_text(options_.least_seconds) +
                  " are needed");
    }
    if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
      recording->warnings.push_back("is damaged behind " + seconds_text(seconds) + " (" + reason(file_.get()) + ")");
    }
    values_.resize(static_cast<size_t>(info_.channels));
    if (frames_ == most_frames_ && sf_readf_float(file_.get(), values_.data(), 1) == 1) {
      recording->warnings.push_back("is cut to its first " + seconds_text(options_.most_seconds));
    } else if (seconds < kGoodSeconds) {
      recording->warnings.push_back("is only " + seconds_text(seconds) + " long: a voice wants " + seconds_text(kGoodSeconds) +
                                    " or more");
    }
  }

  const ReadOptions& options_;
  SF_INFO info_ = {};
  File file_;
  LevelMeter meter_;
  Resampler resampler_;
  int64_t most_frames_, frames_ = 0;
  std::vector<float> values_, mono_;
};

}  // namespace

Recording read_recording(const std::filesystem::path& file, const ReadOptions& options) {
  try {
    Recording recording = Reader(file, options).read();
    for (std::string& warning : recording.warnings) warning = file.string() + ": " + warning;
    return recording;
  } catch (const MemoryError&) {
    throw;
  } catch (const Error& error) {
    throw Error(file.string() + ": " + error.what());
  }
}

}  // namespace ref::audio
