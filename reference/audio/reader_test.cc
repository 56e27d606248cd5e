// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/reader.h"

#include <cstdlib>
#include <limits>

#include "reference/audio/audio_for_test.h"
#include "reference/core/error.h"
#include "tools/common/safetensors.h"

namespace ref::audio {
namespace {

class Reading : public AudioTest {
 protected:
  std::filesystem::path wav(std::span<const float> samples, int rate, int channels = 1,
                            int format = SF_FORMAT_WAV | SF_FORMAT_FLOAT) {
    return write_audio(path("in.wav"), samples, rate, channels, format);
  }
  // The line of the error, without the name of the file, which it must begin with.
  static std::string refusal(const std::filesystem::path& file, const ReadOptions& options = {}) {
    try {
      read_recording(file, options);
    } catch (const Error& error) {
      const std::string line = error.what(), begin = file.string() + ": ";
      EXPECT_TRUE(line.starts_with(begin)) << line;
      EXPECT_EQ(line.find('\n'), line.npos) << line;
      return line.substr(begin.size());
    }
    return "none";
  }
  static bool warned(const Recording& recording, const std::string& what) {
    for (const std::string& line : recording.warnings) {
      if (line.find(what) != line.npos) return true;
    }
    return false;
  }
};

// AC-071.
class RatesOfReading : public Reading, public ::testing::WithParamInterface<int> {};

TEST_P(RatesOfReading, ATone) {
  const int rate = GetParam();
  const Recording recording = read_recording(wav(tone(440, rate, 2), rate), {});
  EXPECT_NEAR(static_cast<double>(recording.samples.size()), 48000, 1);
  EXPECT_EQ(recording.source_rate, rate);
  double best = 0, at = 0;
  for (double hertz = 430; hertz <= 450; hertz += 0.25) {
    const double level = amplitude(recording.samples, hertz, 24000);
    if (level > best) best = level, at = hertz;
  }
  EXPECT_NEAR(at, 440, 1);
  EXPECT_NEAR(best, 0.5, 0.005);
}
INSTANTIATE_TEST_SUITE_P(All, RatesOfReading, ::testing::Values(8000, 16000, 22050, 24000, 44100, 48000, 96000));

TEST_F(Reading, AToneAboveTheBandLeavesNoAlias) {
  std::vector<float> samples = tone(15000, 48000, 2);
  const std::vector<float> audible = tone(300, 48000, 2, 0.1);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += audible[i];
  const Recording recording = read_recording(wav(samples, 48000), {});
  // 15 kHz would come back at 9 kHz; 60 dB below 0.5.
  EXPECT_LT(amplitude(recording.samples, 9000, 24000), 0.5e-3);
  EXPECT_NEAR(amplitude(recording.samples, 300, 24000), 0.1, 1e-3);
}

TEST_F(Reading, ResampledAsTheReference) {
  const char* goldens = std::getenv("OMNI_GOLDENS");
  if (goldens == nullptr) GTEST_SKIP() << "OMNI_GOLDENS is not set";
  const auto file = omni_files::SafetensorsFile::open(std::filesystem::path(goldens) / "tts/golden/resample.safetensors");
  const auto floats = [&](const std::string& name) {
    const auto* tensor = file.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor->as<float>();
  };
  for (const int rate : {16000, 44100, 48000}) {
    const std::vector<float> expected = floats("out_" + std::to_string(rate));
    const std::vector<float> made = resample(floats("in_" + std::to_string(rate)), rate, 24000);
    ASSERT_EQ(made.size(), expected.size()) << rate;
    double most = 0;
    for (size_t i = 0; i < made.size(); ++i) most = std::max<double>(most, std::fabs(made[i] - expected[i]));
    EXPECT_LT(most, 1e-3) << rate;
    RecordProperty("error_" + std::to_string(rate), std::to_string(most));
  }
}

TEST_F(Reading, HowItIsCutIntoBlocksDoesNotShow) {
  // Stereo is read in blocks half as long as mono.
  const std::vector<float> mono = tone(440, 44100, 4);
  std::vector<float> stereo;
  for (const float sample : mono) stereo.insert(stereo.end(), {sample, sample});
  const std::vector<float> a = read_recording(wav(mono, 44100), {}).samples;
  EXPECT_EQ(a, read_recording(wav(stereo, 44100, 2), {}).samples);
  EXPECT_EQ(a, resample(mono, 44100, 24000));
}

TEST_F(Reading, ChannelsAreAveraged) {
  const std::vector<float> left = tone(440, 24000, 4), right = tone(1000, 24000, 4);
  std::vector<float> stereo;
  for (size_t i = 0; i < left.size(); ++i) stereo.insert(stereo.end(), {left[i], right[i]});
  const Recording recording = read_recording(wav(stereo, 24000, 2), {});
  EXPECT_EQ(recording.source_channels, 2);
  ASSERT_EQ(recording.samples.size(), left.size());
  for (size_t i = 0; i < left.size(); ++i) ASSERT_EQ(recording.samples[i], (left[i] + right[i]) / 2) << i;
  EXPECT_TRUE(recording.warnings.empty()) << recording.warnings[0];

  std::vector<float> opposite;
  for (const float sample : left) opposite.insert(opposite.end(), {sample, -sample});
  EXPECT_EQ(refusal(wav(opposite, 24000, 2)), "is silent once its 2 channels are averaged");
}

TEST_F(Reading, UsualFormatsByTheirContent) {
  const std::vector<float> samples = tone(440, 24000, 4);
  const std::pair<int, double> formats[] = {{SF_FORMAT_WAV | SF_FORMAT_PCM_16, 4e-5},  {SF_FORMAT_WAV | SF_FORMAT_PCM_24, 2e-7},
                                            {SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 1e-2},  {SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 1e-9},
                                            {SF_FORMAT_WAV | SF_FORMAT_ULAW, 2e-2},    {SF_FORMAT_WAVEX | SF_FORMAT_PCM_32, 1e-7},
                                            {SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 4e-5}, {SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 4e-5},
                                            {SF_FORMAT_AU | SF_FORMAT_PCM_16, 4e-5},   {SF_FORMAT_CAF | SF_FORMAT_PCM_24, 2e-7},
                                            {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 4e-5}, {SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 2e-7},
                                            {SF_FORMAT_OGG | SF_FORMAT_VORBIS, 5e-2},  {SF_FORMAT_OGG | SF_FORMAT_OPUS, 2}};
  for (const auto& [format, tolerance] : formats) {
    // The name is a lie each time but one.
    const Recording recording = read_recording(write_audio(path("in.mp3"), samples, 24000, 1, format), {});
    ASSERT_EQ(recording.samples.size(), samples.size()) << std::hex << format;
    double most = 0;
    for (size_t i = 0; i < samples.size(); ++i) most = std::max<double>(most, std::fabs(samples[i] - recording.samples[i]));
    EXPECT_LE(most, tolerance) << std::hex << format;
    EXPECT_NEAR(amplitude(recording.samples, 440, 24000), 0.5, 0.02) << std::hex << format;  // Opus keeps no phase
  }
}

// AC-073.
TEST_F(Reading, HeadersThatLie) {
  std::string data;
  for (const float sample : tone(440, 24000, 4)) data += little_endian(static_cast<uint16_t>(std::lround(sample * 32767)), 2);
  const auto read = [&](const std::string& bytes) { return read_recording(write_file(path("in.wav"), bytes), {}).samples.size(); };
  const auto size = static_cast<uint32_t>(data.size());
  EXPECT_EQ(read(wav_bytes(data, size)), 96000U);
  EXPECT_EQ(read(wav_bytes(data, 0xFFFFFFFF)), 96000U);
  EXPECT_EQ(read(wav_bytes(data, 0x7FFFFFFE)), 96000U);
  EXPECT_EQ(read(wav_bytes(data, size + 1000)), 96000U);
  EXPECT_EQ(read(wav_bytes(data + "x", size + 1)), 96000U);
  EXPECT_EQ(read(wav_bytes(data, size - 1)), 95999U);
  EXPECT_NE(refusal(write_file(path("in.wav"), wav_bytes("", 0))), "none");
  EXPECT_NE(refusal(write_file(path("in.wav"), wav_bytes("", 0xFFFFFFFF))), "none");
  for (const size_t length : {0, 1, 4, 12, 16, 20, 30, 36, 40, 44}) {
    EXPECT_NE(refusal(write_file(path("in.wav"), wav_bytes(data, size).substr(0, length))), "none") << length;
  }
  // Either all that is there, or an error.
  const std::filesystem::path none = write_file(path("in.wav"), wav_bytes(data, 0));
  try {
    EXPECT_EQ(read_recording(none, {}).samples.size(), 96000U);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no samples"), std::string::npos) << error.what();
  }
}

TEST_F(Reading, RandomDamageIsAnErrorOrARecording) {
  const std::vector<float> samples = tone(440, 24000, 0.5);
  uint32_t seed = 1;
  const auto next = [&] { return seed = seed * 1664525 + 1013904223, seed >> 8; };
  for (const int format : {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_OGG | SF_FORMAT_VORBIS,
                           SF_FORMAT_AIFF | SF_FORMAT_PCM_16, SF_FORMAT_CAF | SF_FORMAT_PCM_16}) {
    const std::string bytes = read_file(write_audio(path("in"), samples, 24000, 1, format));
    for (int i = 0; i < 60; ++i) {
      std::string damaged = bytes;
      for (int k = 0; k < 4; ++k) damaged[next() % std::min<size_t>(damaged.size(), 128)] = static_cast<char>(next());
      if (i % 3 == 0) damaged.resize(next() % damaged.size());
      try {
        for (const float sample : read_recording(write_file(path("in"), damaged), {}).samples) ASSERT_TRUE(std::isfinite(sample));
      } catch (const Error&) {
      }
    }
  }
}

// AC-075.
TEST_F(Reading, WhatIsNoVoice) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(wav(std::vector<float>(72000, 0.0F), 24000)), "is silent: its peak is 0");
  EXPECT_EQ(refusal(wav(tone(440, 24000, 3, 5e-5), 24000)), "is silent: its peak is 5e-05");
  EXPECT_EQ(refusal(wav(std::vector<float>(72000, 0.25F), 24000)), "is silent: nothing but a constant offset of 0.25");
  EXPECT_EQ(refusal(wav(tone(440, 24000, 0.02), 24000)), "is 0.02 s long, too short: at least 0.1 s are needed");
  std::vector<float> samples = tone(440, 24000, 3);
  samples[70000] = nan;
  EXPECT_EQ(refusal(wav(samples, 24000)), "sample 70000 is NaN");
  samples[70000] = -infinity;
  EXPECT_EQ(refusal(wav(samples, 24000)), "sample 70000 is infinite");
  EXPECT_EQ(refusal(wav(tone(440, 24000, 3, 20000), 24000)), "its samples reach 2e+04 where full scale is 1");
}

TEST_F(Reading, WhatIsHeardWithAWarning) {
  std::vector<float> square = tone(440, 24000, 4);
  for (float& sample : square) sample = sample < 0 ? -1.0F : 1.0F;
  EXPECT_TRUE(warned(read_recording(wav(square, 24000), {}), "clipped: 100 %"));
  EXPECT_TRUE(warned(read_recording(wav(square, 24000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16), {}), "clipped: 100 %"));
  EXPECT_TRUE(warned(read_recording(wav(tone(440, 24000, 4, 0.005), 24000), {}), "very quiet"));
  std::vector<float> loud = tone(440, 24000, 4);
  loud[100] = 1.5F;
  EXPECT_TRUE(warned(read_recording(wav(loud, 24000), {}), "beyond full scale: its peak is 1.5"));
  EXPECT_TRUE(warned(read_recording(wav(tone(440, 24000, 0.1), 24000), {}), "only 0.1 s long"));
  std::vector<float> gaps = tone(440, 24000, 4);
  std::fill(gaps.begin() + 24000, gaps.end(), 0.0F);
  EXPECT_TRUE(warned(read_recording(wav(gaps, 24000), {}), "75 % of it is silence"));
  EXPECT_TRUE(read_recording(wav(tone(440, 24000, 120), 24000), {}).warnings.empty());
}

TEST_F(Reading, TheLongestIsCut) {
  ReadOptions options;
  options.most_seconds = 5;
  for (const int rate : {24000, 44100}) {
    const Recording cut = read_recording(wav(tone(440, rate, 6), rate), options);
    EXPECT_NEAR(static_cast<double>(cut.samples.size()), 120000, 1);
    EXPECT_TRUE(warned(cut, "cut to its first 5 s"));
    EXPECT_TRUE(read_recording(wav(tone(440, rate, 5), rate), options).warnings.empty());
  }
}

TEST_F(Reading, WhatIsNoRecording) {
  EXPECT_NE(refusal(path("absent.wav")).find("cannot be opened (No such file"), std::string::npos);
  EXPECT_EQ(refusal(path("")), "is no file");
  EXPECT_NE(refusal(write_file(path("in.wav"), "a text about audio, and not a short one")).find("is no audio that can be read"),
            std::string::npos);
  EXPECT_NE(refusal(wav(tone(440, 24000, 4), 100)).find("a rate of 100 Hz"), std::string::npos);
}

}  // namespace
}  // namespace ref::audio
