// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/voice_file.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "reference/qwen3_tts/voice/voice_for_test.h"

namespace ref::tts {
namespace {

class VoiceFile : public testing::Test {
 protected:
  VoiceFile() {
    std::filesystem::create_directories(directory_);
    config_ = read_config(synthetic_config("qwen3-tts-tiny"), "tiny");
    for (int64_t i = 0; i < config_.talker.stack.hidden; ++i) voice_.speaker.push_back(0.37F * static_cast<float>(i) - 3);
    for (int32_t i = 0; i < 5; ++i) {
      Frame frame;
      for (int32_t j = 0; j < kCodebooks; ++j) frame[static_cast<size_t>(j)] = (7 * i + j) % size();
      voice_.frames.push_back(frame);
    }
    voice_.reference_text = "Grüße, \"quoted\"\n你好 🙂";
  }
  ~VoiceFile() override { std::filesystem::remove_all(directory_); }

  int32_t size() const { return static_cast<int32_t>(config_.decoder.codebook_size); }
  // What load_voice() says, behind the name of the file.
  std::string refusal() const {
    const std::string line = test::error_of([&] { load_voice(path_, config_); }), begin = path_.string() + ": ";
    EXPECT_TRUE(line.starts_with(begin)) << line;
    EXPECT_EQ(line.find('\n'), line.npos) << line;
    return line.starts_with(begin) ? line.substr(begin.size()) : line;
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  // The saved voice with a piece of its header replaced by one as long.
  std::string edited(const std::string& from, const std::string& to) const {
    save_voice(voice_, config_, path_);
    std::string text = bytes();
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    EXPECT_EQ(from.size(), to.size());
    text.replace(at, from.size(), to);
    write(text);
    return refusal();
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("omni_voice_" + std::to_string(::getpid()) + "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::filesystem::path path_ = directory_ / "a.voice";
  Config config_;
  Voice voice_;
};

TEST_F(VoiceFile, ThereAndBack) {
  save_voice(voice_, config_, path_);
  const Voice read = load_voice(path_, config_);
  EXPECT_EQ(read.speaker, voice_.speaker);
  EXPECT_EQ(read.frames, voice_.frames);
  EXPECT_EQ(read.reference_text, voice_.reference_text);
  EXPECT_EQ(read.speaker_name, "");
  const std::string first = bytes();
  save_voice(read, config_, path_);
  EXPECT_EQ(bytes(), first);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

TEST_F(VoiceFile, PartsOfAVoice) {
  Voice speaker = voice_;
  speaker.frames.clear();
  save_voice(speaker, config_, path_);
  EXPECT_EQ(load_voice(path_, config_).speaker, voice_.speaker);
  EXPECT_EQ(load_voice(path_, config_).reference_text, "") << "without frames it says nothing";
  Voice frames = voice_;
  frames.speaker.clear();
  save_voice(frames, config_, path_);
  EXPECT_EQ(load_voice(path_, config_).frames, voice_.frames);
}

TEST_F(VoiceFile, WhatIsNotSaved) {
  const auto line = [&](const Voice& voice) { return test::error_of([&] { save_voice(voice, config_, path_); }); };
  EXPECT_NE(line({}).find("has a speaker or frames"), std::string::npos);
  Voice voice = voice_;
  voice.speaker.pop_back();
  EXPECT_NE(line(voice).find("the speaker row has"), std::string::npos);
  voice = voice_;
  voice.reference_text.clear();
  EXPECT_NE(line(voice).find("with the text that they say"), std::string::npos);
  voice.reference_text = "\xff";
  EXPECT_NE(line(voice).find("is not UTF-8"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THROW(save_voice(voice_, config_, directory_ / "no/a.voice"), OutputError);
}

TEST_F(VoiceFile, OfAnotherModel) {
  save_voice(voice_, config_, path_);
  Config other = config_;
  other.talker.stack.hidden *= 2;
  std::swap(other, config_);
  EXPECT_EQ(refusal(), "was made for a model with rows of width \"" + std::to_string(other.talker.stack.hidden) +
                           "\", this one has " + std::to_string(config_.talker.stack.hidden));
  std::swap(other, config_);
  config_.decoder.codebook_size *= 2;
  EXPECT_NE(refusal().find("a model with codebooks of"), std::string::npos);
}

TEST_F(VoiceFile, HostileHeaders) {
  EXPECT_NE(edited("omni-voice", "omni-noise").find("is no voice"), std::string::npos);
  EXPECT_EQ(edited("\"version\":\"1\"", "\"version\":\"2\""), "is a voice of version \"2\", this program reads version 1");
  EXPECT_NE(edited("\"F32\"", "\"I32\"").find("tensor \"speaker\" is not F32"), std::string::npos);
  EXPECT_NE(edited("\"I32\"", "\"F32\"").find("tensor \"frames\" is not I32"), std::string::npos);
  EXPECT_NE(edited("\"speaker\":", "\"speakes\":").find("holds tensor \"speakes\", which is no part"), std::string::npos);
  EXPECT_NE(edited("[5,16]", "[16,5]").find("tensor \"frames\" is not ["), std::string::npos);
  EXPECT_NE(edited("reference_text", "reference_texx").find("no text that they say"), std::string::npos);
  EXPECT_NE(edited("[5,16]", "[5,17]"), "");
  EXPECT_NE(edited("\"data_offsets\":[0", "\"data_offsets\":[4"), "");
}

TEST_F(VoiceFile, HostileValues) {
  const auto after = [&](const std::function<void(Voice*)>& change) {
    Voice voice = voice_;
    change(&voice);
    save_voice(voice, config_, path_);
    return refusal();
  };
  EXPECT_EQ(after([&](Voice* voice) { voice->frames[3][2] = size(); }),
            "code " + std::to_string(size()) + " of frame 3 is not below " + std::to_string(size()));
  EXPECT_NE(after([](Voice* voice) { voice->frames[0][0] = -1; }).find("code -1 of frame 0"), std::string::npos);
  EXPECT_EQ(after([](Voice* voice) { voice->speaker[4] = std::numeric_limits<float>::quiet_NaN(); }),
            "tensor \"speaker\" has a value that is not finite at 4");
}

TEST_F(VoiceFile, DamagedFiles) {
  EXPECT_NE(refusal(), "");
  save_voice(voice_, config_, path_);
  const std::string whole = bytes();
  for (size_t length = 0; length < whole.size(); length += 1 + length / 8) {
    write(whole.substr(0, length));
    EXPECT_NE(refusal(), "") << length;
  }
  uint32_t seed = 1;
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525 + 1013904223;
      text[(seed >> 8) % text.size()] = static_cast<char>(seed >> 3);
    }
    write(text);
    try {
      const Voice voice = load_voice(path_, config_);
      for (const Frame& frame : voice.frames) {
        for (const int32_t code : frame) ASSERT_TRUE(code >= 0 && code < size());
      }
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace ref::tts
