// SPDX-License-Identifier: Apache-2.0
// Clones from outside: recordings, what they say, and voices in files.
#include "reference/speak/program_for_test.h"

namespace ref::speak::testing {
namespace {

class Clone : public Program {
 protected:
  Clone() { write_tone(path("ref.wav"), 1.5); }
  const Arguments say_ = {"hello world", "--max-frames", "6", "--seed", "4"};
  std::string with(Arguments more) const {
    more.insert(more.begin(), say_.begin(), say_.end());
    return wav_of(more, 9);
  }
};

TEST_F(Clone, AVoiceOfARecording) {
  const std::string plain = with({}), vector = with({"--reference", path("ref.wav")});
  const std::string continued = with({"--reference", path("ref.wav"), "--reference-text", "this is a test"});
  EXPECT_NE(plain, vector);
  EXPECT_NE(vector, continued);
  // Nothing of the reference is heard: as long as ever.
  for (const std::string& wav : {plain, vector, continued}) EXPECT_EQ(Wav(wav).samples.size(), 6U * 1920U);
  const Json json = json_of({"hello", "--max-frames", "3", "--reference", path("ref.wav"), "--reference-text", "this is"}, 9);
  EXPECT_EQ(json["voice"]["reference_frames"], 19);  // ceil(1.5 s * 12.5)
  EXPECT_GT(json["voice"]["vector"], 0);
}

TEST_F(Clone, ASavedVoiceIsTheSame) {
  for (const bool text : {false, true}) {
    Arguments reference = {"--reference", path("ref.wav")};
    if (text) reference.insert(reference.end(), {"--reference-text", "this is a test"});
    const std::string direct = with(reference);
    Arguments save = reference;
    save.insert(save.end(), {"--save-voice", path("a.voice"), "-q"});
    const Outcome saved = run(speak(save));  // no text: the voice is all
    EXPECT_EQ(saved.exit_code, 0) << saved.err;
    EXPECT_EQ(with({"--voice", path("a.voice")}), direct);
    // Both at once.
    fs::remove(path("a.voice"));
    save.pop_back();
    EXPECT_EQ(with(save), direct);
    EXPECT_TRUE(fs::exists(path("a.voice")));
  }
}

TEST_F(Clone, OtherRatesGiveAVoiceToo) {
  write_tone(path("8k.wav"), 1.0, 8000);
  write_tone(path("96k.wav"), 1.0, 96000);
  for (const char* name : {"8k.wav", "96k.wav"}) {
    const Json json = json_of({"hello", "--max-frames", "2", "--reference", path(name), "--reference-text", "this"}, 9);
    EXPECT_EQ(json["voice"]["reference_frames"], 13) << name;
  }
}

TEST_F(Clone, FaultsAreToldInALine) {
  const auto fails = [&](Arguments more, int code, const std::vector<std::string>& words) {
    more.insert(more.begin(), {"hello", "-q", "-o", path("x.wav")});
    expect_failure(speak(more), code, words);
    EXPECT_FALSE(fs::exists(path("x.wav")));
  };
  fails({"--reference", path("absent.wav")}, 4, {"absent.wav"});
  directory_.write("noise.wav", "this is no sound");
  fails({"--reference", path("noise.wav")}, 4, {"noise.wav"});
  fails({"--voice", path("noise.wav")}, 4, {"noise.wav"});
  write_tone(path("short.wav"), 0.02);
  fails({"--reference", path("short.wav")}, 4, {"short.wav"});
  fails({"--reference-text", "hello"}, 2, {"--reference"});
  fails({"--save-voice", path("v")}, 2, {"--reference"});
  fails({"--reference", path("ref.wav"), "--voice", path("v")}, 2, {"--reference", "--voice"});
  fails({"--reference", path("ref.wav"), "--save-voice", path("none/v")}, 8, {"none/v"});
}

}  // namespace
}  // namespace ref::speak::testing
