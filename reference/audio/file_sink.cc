// SPDX-License-Identifier: Apache-2.0
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "reference/audio/samples.h"
#include "reference/audio/sink.h"
#include "reference/core/staged_file.h"

namespace ref::audio {
namespace {

// Sizes in a WAV header have 32 bits; what is left is for the header.
constexpr int64_t kMostWavBytes = 0xFFFFFFFF - 4096;

int64_t sample_bytes(SampleFormat format) { return format == SampleFormat::kInt16 ? 2 : format == SampleFormat::kInt24 ? 3 : 4; }

int sndfile_format(const WriteOptions& options) {
  const int container = options.container == Container::kFlac ? SF_FORMAT_FLAC : SF_FORMAT_WAV;
  switch (options.format) {
    case SampleFormat::kInt16:
      return container | SF_FORMAT_PCM_16;
    case SampleFormat::kInt24:
      return container | SF_FORMAT_PCM_24;
    default:
      return container | SF_FORMAT_FLOAT;
  }
}

// libsndfile's bytes on their way to the disk. Done here, since libsndfile forgets why a write failed, and some that did.
struct Disk {
  int descriptor;
  int error = 0;

  static Disk& of(void* user) { return *static_cast<Disk*>(user); }
  static sf_count_t length(void* user) {
    struct stat status {};
    return ::fstat(of(user).descriptor, &status) == 0 ? status.st_size : -1;
  }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) { return ::lseek(of(user).descriptor, offset, whence); }
  static sf_count_t tell(void* user) { return ::lseek(of(user).descriptor, 0, SEEK_CUR); }
  static sf_count_t read(void* out, sf_count_t bytes, void* user) {
    return ::read(of(user).descriptor, out, static_cast<size_t>(bytes));
  }
  static sf_count_t write(const void* from, sf_count_t bytes, void* user) {
    Disk& disk = of(user);
    sf_count_t done = 0;
    while (done < bytes && disk.error == 0) {
      const ssize_t wrote = ::write(disk.descriptor, static_cast<const char*>(from) + done, static_cast<size_t>(bytes - done));
      if (wrote > 0) {
        done += wrote;
      } else if (wrote == 0 || errno != EINTR) {
        disk.error = wrote == 0 ? ENOSPC : errno;
      }
    }
    return done;
  }
};

class FileSink : public Sink {
 public:
  FileSink(const std::filesystem::path& destination, const WriteOptions& options)
      : options_(options), staged_(destination), disk_{staged_.descriptor()} {
    SF_INFO info = {};
    info.samplerate = static_cast<int>(options.rate);
    info.channels = 1;
    info.format = sndfile_format(options);
    SF_VIRTUAL_IO io = {Disk::length, Disk::seek, Disk::read, Disk::write, Disk::tell};
    file_ = sf_open_virtual(&io, SFM_WRITE, &info, &disk_);
    check_disk();
    if (file_ == nullptr) throw OutputError(staged_.name() + ": cannot be begun (" + sf_strerror(nullptr) + ")");
    // It holds the time of the day, and files of the same samples shall be the same.
    sf_command(file_, SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
  }
  ~FileSink() override {
    if (file_ != nullptr) sf_close(file_);
  }

  bool write(std::span<const float> samples) override {
    const auto count = static_cast<sf_count_t>(samples.size());
    written_ += count;
    if (options_.container == Container::kWav && written_ > kMostWavBytes / sample_bytes(options_.format)) {
      throw OutputError(staged_.name() + ": a WAV file ends at 4 GiB, FLAC and streams do not");
    }
    const sf_count_t wrote = write_some(samples);
    check_disk();
    if (wrote != count) throw OutputError(staged_.name() + ": cannot be written (" + sf_strerror(file_) + ")");
    return true;
  }

  void finish() override {
    const int status = sf_close(std::exchange(file_, nullptr));
    check_disk();
    if (status != 0) throw OutputError(staged_.name() + ": cannot be finished (" + sf_error_number(status) + ")");
    staged_.commit();
  }

 private:
  // As integers of ours: libsndfile has scales and roundings of its own for what it converts.
  sf_count_t write_some(std::span<const float> samples) {
    const auto count = static_cast<sf_count_t>(samples.size());
    if (options_.format == SampleFormat::kFloat) return sf_write_float(file_, samples.data(), count);
    if (options_.format == SampleFormat::kInt16) {
      shorts_.clear();
      for (const float sample : samples) shorts_.push_back(to_int16(sample));
      return sf_write_short(file_, shorts_.data(), count);
    }
    ints_.clear();
    for (const float sample : samples) ints_.push_back(to_int24(sample) * 256);  // it takes the upper 24 bits
    return sf_write_int(file_, ints_.data(), count);
  }
  void check_disk() const {
    if (disk_.error != 0) throw OutputError(staged_.name() + ": cannot be written (" + std::strerror(disk_.error) + ")");
  }

  WriteOptions options_;
  StagedFile staged_;
  Disk disk_;
  SNDFILE* file_ = nullptr;
  int64_t written_ = 0;
  std::vector<int16_t> shorts_;
  std::vector<int32_t> ints_;
};

}  // namespace

std::unique_ptr<Sink> file_sink(const std::filesystem::path& destination, const WriteOptions& options) {
  return std::make_unique<FileSink>(destination, options);
}

}  // namespace ref::audio
