// SPDX-License-Identifier: Apache-2.0
// Recordings made up for tests: files byte by byte or by libsndfile, tones, and how much of a tone there is.
#pragma once

#include <gtest/gtest.h>
#include <sndfile.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace ref::audio {

// A directory of one test, gone with it.
class AudioTest : public ::testing::Test {
 protected:
  AudioTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("omni_audio_" + std::to_string(::getpid()) + "_" + info->test_suite_name() + "_" + info->name());
    std::filesystem::create_directories(directory_);
  }
  ~AudioTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename().string());
    return names;
  }

 private:
  std::filesystem::path directory_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return text;
}
inline uint32_t number_at(const std::string& bytes, size_t offset, int size = 4) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes.at(offset + i))) << (8 * i);
  return value;
}

// A 16-bit mono WAV whose data chunk claims `claimed` bytes.
inline std::string wav_bytes(const std::string& data, uint32_t claimed, uint32_t rate = 24000) {
  return "RIFF" + little_endian(36 + claimed, 4) + "WAVEfmt " + little_endian(16, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(rate, 4) + little_endian(2 * rate, 4) + little_endian(2, 2) + little_endian(16, 2) + "data" +
         little_endian(claimed, 4) + data;
}

inline std::vector<float> tone(double hertz, int64_t rate, double seconds, double level = 0.5) {
  std::vector<float> samples(static_cast<size_t>(std::llround(seconds * static_cast<double>(rate))));
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<float>(level * std::sin(2 * M_PI * hertz * static_cast<double>(i) / static_cast<double>(rate)));
  }
  return samples;
}

inline std::filesystem::path write_audio(const std::filesystem::path& path, std::span<const float> samples, int rate, int channels,
                                         int format) {
  SF_INFO info = {};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  EXPECT_NE(file, nullptr) << sf_strerror(nullptr);
  if (file == nullptr) return path;
  const auto count = static_cast<sf_count_t>(samples.size());
  EXPECT_EQ(sf_write_float(file, samples.data(), count), count);
  sf_close(file);
  return path;
}

// Amplitude of a tone in the middle of the samples, under a Hann window: 1 for a full-scale one.
inline double amplitude(std::span<const float> samples, double hertz, double rate) {
  double re = 0, im = 0, weight = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double w = 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / static_cast<double>(samples.size()));
    const double angle = 2 * M_PI * hertz * static_cast<double>(i) / rate;
    re += w * samples[i] * std::cos(angle);
    im += w * samples[i] * std::sin(angle);
    weight += w;
  }
  return 2 * std::hypot(re, im) / weight;
}

}  // namespace ref::audio
