// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "reference/audio/samples.h"
#include "reference/audio/sink.h"
#include "reference/audio/wav_header.h"
#include "reference/core/error.h"

namespace ref::audio {
namespace {

class StreamSink : public Sink {
 public:
  StreamSink(int descriptor, bool owned, std::string name, const WriteOptions& options)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)), options_(options) {
    // Goes out with the first samples, or with finish().
    if (options_.container == Container::kWav) bytes_ = streaming_wav_header(options_.format, options_.rate);
  }
  ~StreamSink() override {
    if (owned_) ::close(descriptor_);
  }

  bool write(std::span<const float> samples) override {
    for (const float sample : samples) append(sample);
    return flush();
  }
  void finish() override { flush(); }

 private:
  void append(float sample) {
    switch (options_.format) {
      case SampleFormat::kInt16:
        return append(static_cast<uint32_t>(to_int16(sample)), 2);
      case SampleFormat::kInt24:
        return append(static_cast<uint32_t>(to_int24(sample)), 3);
      case SampleFormat::kFloat:
        return append(std::bit_cast<uint32_t>(sample), 4);
    }
  }
  // Little-endian.
  void append(uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }

  // A pipe takes what it has room for; the rest waits here.
  bool flush() {
    size_t done = 0;
    while (done < bytes_.size() && !gone_) {
      const ssize_t wrote = ::write(descriptor_, bytes_.data() + done, bytes_.size() - done);
      if (wrote > 0) {
        done += static_cast<size_t>(wrote);
      } else if (wrote < 0 && errno == EPIPE) {
        gone_ = true;
      } else if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        wait();
      } else if (wrote == 0 || errno != EINTR) {
        throw OutputError(name_ + ": cannot be written (" + std::strerror(wrote == 0 ? ENOSPC : errno) + ")");
      }
    }
    bytes_.clear();
    return !gone_;
  }
  // Whoever gave us the descriptor made it one that does not block.
  void wait() const {
    pollfd room = {descriptor_, POLLOUT, 0};
    ::poll(&room, 1, -1);
  }

  int descriptor_;
  bool owned_, gone_ = false;
  std::string name_;
  WriteOptions options_;
  std::string bytes_;
};

}  // namespace

std::unique_ptr<Sink> stream_sink(int descriptor, bool owned, const std::string& name, const WriteOptions& options) {
  return std::make_unique<StreamSink>(descriptor, owned, name, options);
}

}  // namespace ref::audio
