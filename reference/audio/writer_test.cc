// SPDX-License-Identifier: Apache-2.0
#include "reference/audio/writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <limits>
#include <thread>

#include "reference/audio/audio_for_test.h"
#include "reference/audio/reader.h"
#include "reference/audio/samples.h"
#include "reference/audio/wav_header.h"
#include "reference/core/error.h"

namespace ref::audio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Writing : public AudioTest {
 protected:
  Writing() { std::signal(SIGPIPE, SIG_IGN); }

  // `write` gives the samples to a writer.
  std::string file_of(std::span<const float> samples, const WriteOptions& options) {
    const std::filesystem::path file = path("out");
    Writer writer = Writer::open(file, options);
    EXPECT_TRUE(writer.write(samples));
    writer.finish();
    return read_file(file);
  }
  // What comes out of a named pipe.
  std::string piped(std::span<const float> samples, const WriteOptions& options) {
    const std::filesystem::path pipe = path("pipe");
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::string got;
    std::thread reader([&] { got = read_file(pipe); });
    {
      Writer writer = Writer::open(pipe, options);
      EXPECT_TRUE(writer.write(samples));
      writer.finish();
    }
    reader.join();
    std::filesystem::remove(pipe);
    return got;
  }
};

// AC-072.
TEST_F(Writing, NothingWraps) {
  const std::vector<float> samples = {0, 0.5F, 1, 1.5F, -1, -1.5F, kNan, kInfinity, -kInfinity};
  // 0.5 is 16383.5: to the even one.
  const int expected[] = {0, 16384, 32767, 32767, -32767, -32767, 0, 32767, -32767};
  for (size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(to_int16(samples[i]), expected[i]) << samples[i];
  EXPECT_EQ(to_int24(1.5F), 8388607);
  EXPECT_EQ(to_int24(-kInfinity), -8388607);
  EXPECT_EQ(to_int24(0.25F), 2097152);
  Writer writer = Writer::open(path("out.wav"), {});
  writer.write(samples);
  EXPECT_EQ(writer.clipped(), 4);
  EXPECT_EQ(writer.samples(), 9);
  writer.finish();
  const std::string bytes = read_file(path("out.wav"));
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(static_cast<int16_t>(number_at(bytes, 44 + 2 * i, 2)), expected[i]) << samples[i];
  }
  const std::string real = file_of(samples, {Container::kWav, SampleFormat::kFloat, 24000});
  const size_t data = real.find("data") + 8;
  EXPECT_EQ(number_at(real, data + 12), 0x3F800000U);  // 1.5 is 1
  EXPECT_EQ(number_at(real, data + 24), 0U);           // NaN is 0
}

// AC-070.
TEST_F(Writing, HeadersOfFiles) {
  for (const uint32_t count : {0U, 1U, 76800U}) {
    const std::string bytes = file_of(std::vector<float>(count, 0.25F), {});
    EXPECT_EQ(bytes.substr(0, 44), wav_bytes("", 2 * count)) << count;
    EXPECT_EQ(bytes.size(), 44 + 2 * count);
    EXPECT_EQ(number_at(bytes, 4), bytes.size() - 8);
    EXPECT_EQ(number_at(bytes, 28), 48000U);  // byte rate
    EXPECT_EQ(number_at(bytes, 40), 2 * count);
  }
  // An odd number of bytes is padded, and the padding is not counted.
  const std::string odd = file_of(std::vector<float>(3, 0.25F), {Container::kWav, SampleFormat::kInt24, 24000});
  EXPECT_EQ(number_at(odd, odd.find("data") + 4), 9U);
  EXPECT_EQ(odd.size() % 2, 0U);
  EXPECT_EQ(number_at(odd, 4), odd.size() - 8);
}

TEST_F(Writing, HeadersOfStreams) {
  const std::string unknown = little_endian(0xFFFFFFFF, 4);
  const auto integers = [&](uint64_t bytes) {
    return "RIFF" + unknown + "WAVEfmt " + little_endian(16, 4) + little_endian(1, 2) + little_endian(1, 2) +
           little_endian(24000, 4) + little_endian(24000 * bytes, 4) + little_endian(bytes, 2) + little_endian(8 * bytes, 2) +
           "data" + unknown;
  };
  const std::string real = "RIFF" + unknown + "WAVEfmt " + little_endian(18, 4) + little_endian(3, 2) + little_endian(1, 2) +
                           little_endian(24000, 4) + little_endian(96000, 4) + little_endian(4, 2) + little_endian(32, 2) +
                           little_endian(0, 2) + "fact" + little_endian(4, 4) + unknown + "data" + unknown;
  EXPECT_EQ(streaming_wav_header(SampleFormat::kInt16, 24000), integers(2));
  EXPECT_EQ(streaming_wav_header(SampleFormat::kInt24, 24000), integers(3));
  EXPECT_EQ(streaming_wav_header(SampleFormat::kFloat, 24000), real);
  for (const size_t count : {0, 1, 76800}) {
    const std::string wav = piped(std::vector<float>(count, 0.25F), {});
    EXPECT_EQ(wav.substr(0, 44), integers(2)) << count;
    EXPECT_EQ(wav.size(), 44 + 2 * count);
    EXPECT_EQ(piped(std::vector<float>(count, 0.25F), {Container::kRaw, SampleFormat::kInt16, 24000}), wav.substr(44));
  }
}

TEST_F(Writing, StreamsOfAllFormatsHoldTheSamplesOfFiles) {
  const std::vector<float> samples = tone(440, 24000, 0.5, 1.2);
  for (const SampleFormat format : {SampleFormat::kInt16, SampleFormat::kInt24, SampleFormat::kFloat}) {
    const std::string raw = piped(samples, {Container::kRaw, format, 24000});
    const std::string file = file_of(samples, {Container::kWav, format, 24000});
    EXPECT_EQ(file.substr(file.find("data") + 8, raw.size()), raw);
    const std::string wav = piped(samples, {Container::kWav, format, 24000});
    const size_t data = wav.find("data") + 8;
    EXPECT_EQ(wav.substr(data), raw);
    // Our own reader takes a stream that went to a file.
    write_file(path("stream.wav"), wav);
    EXPECT_EQ(read_recording(path("stream.wav"), {}).samples.size(), samples.size());
  }
}

TEST_F(Writing, ReadBack) {
  const std::vector<float> samples = tone(440, 24000, 4, 0.9);
  const std::pair<WriteOptions, double> cases[] = {{{Container::kWav, SampleFormat::kInt16, 24000}, 5e-5},
                                                   {{Container::kWav, SampleFormat::kInt24, 24000}, 3e-7},
                                                   {{Container::kWav, SampleFormat::kFloat, 24000}, 0},
                                                   {{Container::kFlac, SampleFormat::kInt16, 24000}, 5e-5},
                                                   {{Container::kFlac, SampleFormat::kInt24, 24000}, 3e-7}};
  for (const auto& [options, tolerance] : cases) {
    const std::string first = file_of(samples, options);
    EXPECT_EQ(first, file_of(samples, options)) << "the same samples, other bytes";
    const std::vector<float> read = read_recording(path("out"), {}).samples;
    ASSERT_EQ(read.size(), samples.size());
    for (size_t i = 0; i < read.size(); ++i) ASSERT_NEAR(read[i], samples[i], tolerance) << i;
  }
}

TEST_F(Writing, CutsDoNotShow) {
  const std::vector<float> samples = tone(440, 24000, 1);
  for (const Container container : {Container::kWav, Container::kFlac}) {
    const std::string whole = file_of(samples, {container, SampleFormat::kInt16, 24000});
    Writer writer = Writer::open(path("parts"), {container, SampleFormat::kInt16, 24000});
    for (size_t i = 0; i < samples.size(); i += 1000) writer.write(std::span(samples).subspan(i, 1000));
    writer.finish();
    EXPECT_EQ(read_file(path("parts")), whole);
  }
}

TEST_F(Writing, AFileAppearsOnlyWhenItIsFinished) {
  write_file(path("out.wav"), "old");
  {
    Writer writer = Writer::open(path("out.wav"), {});
    writer.write(tone(440, 24000, 1));
    EXPECT_EQ(read_file(path("out.wav")), "old");
  }
  EXPECT_EQ(read_file(path("out.wav")), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"out.wav"});
  Writer writer = Writer::open(path("out.wav"), {});
  writer.finish();
  EXPECT_EQ(read_file(path("out.wav")).size(), 44U);
  EXPECT_EQ(files(), std::vector<std::string>{"out.wav"});
  EXPECT_THROW(writer.write(tone(440, 24000, 1)), Error);
}

TEST_F(Writing, ALinkStaysOne) {
  write_file(path("there.wav"), "old");
  std::filesystem::create_symlink("there.wav", path("link.wav"));
  Writer writer = Writer::open(path("link.wav"), {});
  writer.finish();
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.wav")));
  EXPECT_EQ(read_file(path("there.wav")).size(), 44U);
}

TEST_F(Writing, WhatAKilledProcessLeftIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer = Writer::open(path("out.wav"), {});
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(files().size(), 1U);
  Writer writer = Writer::open(path("out.wav"), {});
  writer.finish();
  EXPECT_EQ(files(), std::vector<std::string>{"out.wav"});
}

// A process of its own, as limits and signals are of a process. 0 when `body` finds all as it should be.
template <typename Body>
int in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(Writing, AFullDiskIsAnErrorAndLeavesNothing) {
  for (const Container container : {Container::kWav, Container::kFlac}) {
    for (const size_t count : {100, 200000}) {  // what finish() finds, and what write() does
      const int status = in_child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {container == Container::kFlac && count == 100 ? 20U : 200U, RLIM_INFINITY};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
          Writer writer = Writer::open(path("out"), {container, SampleFormat::kInt16, 24000});
          std::vector<float> noise(count);
          uint32_t seed = 1;
          for (float& sample : noise) sample = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 24);
          writer.write(noise);
          writer.finish();
        } catch (const OutputError& error) {
          return std::string(error.what()).find("out: cannot be written (File too large)") != std::string::npos;
        }
        return false;
      });
      EXPECT_EQ(status, 0) << static_cast<int>(container) << " " << count;
      EXPECT_TRUE(files().empty());
    }
  }
  if (std::filesystem::exists("/dev/full")) {
    Writer writer = Writer::open("/dev/full", {});
    EXPECT_THROW(writer.write(tone(440, 24000, 1)), OutputError);
  }
}

TEST_F(Writing, AReaderThatHasGone) {
  const std::filesystem::path pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  Writer writer = Writer::open(pipe, {});
  EXPECT_TRUE(writer.write(tone(440, 24000, 0.1)));
  ::close(reader);
  EXPECT_FALSE(writer.write(tone(440, 24000, 0.1)));
  EXPECT_FALSE(writer.write(tone(440, 24000, 0.1)));
  writer.finish();
}

TEST_F(Writing, ASlowReaderGetsEverything) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::vector<float> samples = tone(440, 24000, 5);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDOUT_FILENO);
    ::fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);  // as a program before us may leave it
    Writer writer = Writer::open("-", {Container::kRaw, SampleFormat::kInt16, 24000});
    ::_exit(writer.write(samples) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string got(1 << 20, '\0');
  size_t count = 0;
  for (ssize_t read = 1; read > 0; count += static_cast<size_t>(read)) {
    ::usleep(1000);
    read = ::read(ends[0], got.data() + count, 10000);  // 240,000 bytes do not fit the 65,536 of a pipe
  }
  ::close(ends[0]);
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(count, 2 * samples.size());
  for (size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(static_cast<int16_t>(number_at(got, 2 * i, 2)), to_int16(samples[i])) << i;
}

TEST_F(Writing, WhatDoesNotGoTogether) {
  const auto line = [&](const std::filesystem::path& to, const WriteOptions& options) -> std::string {
    try {
      Writer::open(to, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string out = path("out").string();
  EXPECT_EQ(line(out, {Container::kFlac, SampleFormat::kFloat, 24000}), out + ": FLAC has no float samples, only 16 and 24 bits");
  EXPECT_NE(line("-", {Container::kFlac, SampleFormat::kInt16, 24000}).find("standard output: FLAC needs a file"),
            std::string::npos);
  EXPECT_NE(line(out, {Container::kRaw, SampleFormat::kInt16, 24000}).find("raw samples go to"), std::string::npos);
  EXPECT_NE(line(out, {Container::kWav, SampleFormat::kInt16, 0}).find("a rate of 0 Hz"), std::string::npos);
  EXPECT_NE(line(path("no/out.wav"), {}).find("there is no directory"), std::string::npos);
  EXPECT_NE(line(path(""), {}).find("is no name of a file"), std::string::npos);
  EXPECT_THROW(Writer::open(path("no/out.wav"), {}), OutputError);
  EXPECT_TRUE(files().empty());
}

TEST_F(Writing, PythonReadsIt) {
  if (std::system("python3 -c 'import wave' 2>/dev/null") != 0) GTEST_SKIP() << "no python3";
  for (const size_t count : {0, 1, 76800}) {
    Writer writer = Writer::open(path("out.wav"), {});
    writer.write(std::vector<float>(count, 0.25F));
    writer.finish();
    const std::string program =
        "python3 -c \"import wave; w = wave.open('" + path("out.wav").string() +
        "'); assert (w.getnchannels(), w.getsampwidth(), w.getframerate(), w.getnframes()) == (1, 2, 24000, " +
        std::to_string(count) + "); assert len(w.readframes(10**6)) == 2 * " + std::to_string(count) + "\"";
    EXPECT_EQ(std::system(program.c_str()), 0) << count;
  }
}

}  // namespace
}  // namespace ref::audio
