// SPDX-License-Identifier: Apache-2.0
// Test support: omni-speak from outside, on a golden checkpoint of random weights.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "tools/probe/child.h"

namespace ref::speak::testing {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using probe::testing::Command;
using probe::testing::Outcome;
using probe::testing::run;
using Arguments = std::vector<std::string>;

inline std::string base_model() { return std::string(OMNI_TEST_DATA) + "/tts/base-tiny-bf16"; }
// A directory or file of the full set of goldens, "" where it is not.
inline std::string golden(const std::string& path) {
  for (const std::string& root :
       {std::string(OMNI_TEST_DATA), std::string(std::getenv("OMNI_GOLDENS") ? std::getenv("OMNI_GOLDENS") : "")}) {
    if (!root.empty() && fs::exists(root + "/tts/" + path)) return root + "/tts/" + path;
  }
  return "";
}

inline Command program(Arguments arguments) {
  arguments.insert(arguments.begin(), OMNI_SPEAK);
  return {std::move(arguments), {}, nullptr};
}
// Of the small model in the precision of its checkpoint.
inline Command speak(Arguments arguments) {
  arguments.insert(arguments.begin(), {base_model(), "--weights", "keep"});
  return program(std::move(arguments));
}

inline void expect_failure(const Command& command, int exit_code, const std::vector<std::string>& words) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, exit_code) << "signal " << outcome.signal << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.complaints().size(), 1U) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("omni-speak: ")) << outcome.err;
  for (const std::string& word : words) EXPECT_NE(outcome.err.find(word), std::string::npos) << word << "\n" << outcome.err;
}

inline std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline uint32_t field(const std::string& bytes, size_t at, size_t size) {
  uint32_t value = 0;
  if (at + size <= bytes.size()) std::memcpy(&value, bytes.data() + at, size);
  return value;
}

// A 16-bit WAV of a header of 44 bytes.
struct Wav {
  explicit Wav(std::string file) : bytes(std::move(file)) {
    EXPECT_EQ(bytes.substr(0, 4), "RIFF");
    EXPECT_EQ(bytes.substr(8, 8), "WAVEfmt ");
    EXPECT_EQ(bytes.substr(36, 4), "data");
    for (size_t at = 44; at + 1 < bytes.size(); at += 2) {
      samples.push_back(static_cast<float>(static_cast<int16_t>(field(bytes, at, 2))) / 32767.0F);
    }
  }
  std::string pcm() const { return bytes.size() < 44 ? "" : bytes.substr(44); }
  std::string bytes;
  std::vector<float> samples;
};

// A reference recording: a tone that swells, so that it is neither silent nor constant.
inline void write_tone(const fs::path& file, double seconds, int rate = 24000) {
  const auto count = static_cast<uint32_t>(seconds * rate);
  std::string bytes = "RIFF....WAVEfmt ";
  const auto put = [&](uint32_t value, size_t size) { bytes.append(reinterpret_cast<const char*>(&value), size); };
  put(16, 4), put(1, 2), put(1, 2), put(static_cast<uint32_t>(rate), 4), put(static_cast<uint32_t>(2 * rate), 4), put(2, 2),
      put(16, 2);
  bytes += "data";
  put(2 * count, 4);
  for (uint32_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / rate;
    put(static_cast<uint32_t>(static_cast<int16_t>(12000 * std::sin(1382.3 * t) * (0.6 + 0.4 * std::sin(25 * t)))), 2);
  }
  const auto riff = static_cast<uint32_t>(bytes.size() - 8);
  std::memcpy(bytes.data() + 4, &riff, 4);
  std::ofstream(file, std::ios::binary) << bytes;
}

class Program : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  // Runs a text to a file of that name, which must end well, or at its limit.
  Json json_of(Arguments arguments, int exit_code = 0) const {
    arguments.insert(arguments.end(), {"-o", path("json.wav"), "--json", "-q"});
    const Outcome outcome = run(speak(std::move(arguments)));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    Json json = Json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << outcome.out << outcome.err;
    return json;
  }
  std::string wav_of(Arguments arguments, int exit_code = 0) const {
    fs::remove(path("out.wav"));
    arguments.insert(arguments.end(), {"-o", path("out.wav"), "-q"});
    const Outcome outcome = run(speak(std::move(arguments)));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return read_file(path("out.wav"));
  }
  omni_files::TemporaryDirectory directory_;
};

}  // namespace ref::speak::testing
