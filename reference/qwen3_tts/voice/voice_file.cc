// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/voice_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "reference/core/staged_file.h"
#include "tools/common/safetensors.h"

namespace ref::tts {
namespace {

using nlohmann::json;
using omni_files::SafetensorsFile;
using omni_files::Tensor;

constexpr char kFormat[] = "omni-voice", kVersion[] = "1";
constexpr int64_t kMostFrames = 1 << 16;  // 87 minutes
constexpr size_t kMostText = 1 << 20;

static_assert(std::endian::native == std::endian::little, "tensors of safetensors are little-endian");

// Reads one file; its errors begin with the name of it.
class VoiceReader {
 public:
  VoiceReader(const std::filesystem::path& path, const Config& config)
      : path_(path.string()), config_(config), file_(SafetensorsFile::open(path_)) {}

  Voice read() {
    check_kind();
    check_width("talker_hidden", "rows of width", config_.talker.stack.hidden);
    check_width("codebook_size", "codebooks of", config_.decoder.codebook_size);
    for (const auto& [name, tensor] : file_.tensors()) {
      if (name != "speaker" && name != "frames") fail("holds tensor \"" + name + "\", which is no part of a voice");
    }
    Voice voice;
    voice.speaker = read_speaker();
    voice.frames = read_frames();
    voice.reference_text = entry("reference_text");
    if (voice.reference_text.size() > kMostText) fail("has a reference text of more than 1 MiB");
    if (voice.speaker.empty() && voice.frames.empty()) fail("holds neither a speaker nor frames");
    if (!voice.frames.empty() && voice.reference_text.empty()) fail("has frames, but no text that they say");
    return voice;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }

  std::string entry(const char* key) const {
    const auto found = file_.metadata().find(key);
    return found == file_.metadata().end() ? std::string() : found->second;
  }

  void check_kind() const {
    if (entry("format") != kFormat) fail("is no voice (its metadata does not say format omni-voice)");
    if (entry("version") != kVersion) fail("is a voice of version " + quoted(entry("version")) + ", this program reads version 1");
  }
  void check_width(const char* key, const char* what, int64_t wanted) const {
    const std::string said = entry(key);
    if (said == std::to_string(wanted)) return;
    fail(std::string("was made for a model with ") + what + " " + quoted(said) + ", this one has " + std::to_string(wanted));
  }
  // Of a stranger's file: short, and on one line.
  static std::string quoted(const std::string& text) {
    return json(text.substr(0, 24)).dump(-1, ' ', true, json::error_handler_t::replace);
  }

  const Tensor* find(const char* name, const char* dtype) const {
    const Tensor* tensor = file_.find(name);
    if (tensor != nullptr && tensor->dtype != dtype) fail(std::string("tensor \"") + name + "\" is not " + dtype);
    return tensor;
  }

  std::vector<float> read_speaker() const {
    const Tensor* tensor = find("speaker", "F32");
    if (tensor == nullptr) return {};
    if (tensor->shape != std::vector<int64_t>{config_.talker.stack.hidden}) {
      fail("tensor \"speaker\" is not one row of " + std::to_string(config_.talker.stack.hidden));
    }
    std::vector<float> values = tensor->as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) fail("tensor \"speaker\" has a value that is not finite at " + std::to_string(i));
    }
    return values;
  }

  std::vector<Frame> read_frames() const {
    const Tensor* tensor = find("frames", "I32");
    if (tensor == nullptr) return {};
    const std::vector<int64_t>& shape = tensor->shape;
    if (shape.size() != 2 || shape[1] != kCodebooks || shape[0] < 1 || shape[0] > kMostFrames) {
      fail("tensor \"frames\" is not [1.." + std::to_string(kMostFrames) + "][16]");
    }
    const std::vector<int32_t> codes = tensor->as<int32_t>();
    for (size_t i = 0; i < codes.size(); ++i) {
      if (codes[i] < 0 || codes[i] >= config_.decoder.codebook_size) {
        fail("code " + std::to_string(codes[i]) + " of frame " + std::to_string(i / kCodebooks) + " is not below " +
             std::to_string(config_.decoder.codebook_size));
      }
    }
    std::vector<Frame> frames(static_cast<size_t>(shape[0]));
    std::memcpy(frames.data(), codes.data(), codes.size() * sizeof(int32_t));
    return frames;
  }

  std::string path_;
  const Config& config_;
  SafetensorsFile file_;
};

// 8 bytes of length, then JSON, padded so that the data begin on 8 bytes.
std::string header_of(const Voice& voice, const Config& config, const std::string& path) {
  json header;
  header["__metadata__"] = {{"format", kFormat},
                            {"version", kVersion},
                            {"talker_hidden", std::to_string(config.talker.stack.hidden)},
                            {"codebook_size", std::to_string(config.decoder.codebook_size)}};
  if (!voice.frames.empty()) header["__metadata__"]["reference_text"] = voice.reference_text;
  size_t offset = 0;
  const auto add = [&](const char* name, const char* dtype, const json& shape, size_t bytes) {
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  if (!voice.speaker.empty()) add("speaker", "F32", {voice.speaker.size()}, voice.speaker.size() * sizeof(float));
  if (!voice.frames.empty()) {
    add("frames", "I32", {voice.frames.size(), size_t{kCodebooks}}, voice.frames.size() * sizeof(Frame));
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw Error(path + ": the reference text is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

// What load_voice() would refuse is not written.
void check_voice(const Voice& voice, const Config& config, const std::string& path) {
  const auto fail = [&](const std::string& what) { throw Error(path + ": " + what); };
  if (voice.speaker.empty() && voice.frames.empty()) fail("a voice to save has a speaker or frames of a reference");
  if (!voice.speaker.empty() && static_cast<int64_t>(voice.speaker.size()) != config.talker.stack.hidden) {
    fail("the speaker row has " + std::to_string(voice.speaker.size()) + " values for a model of width " +
         std::to_string(config.talker.stack.hidden));
  }
  if (!voice.frames.empty() && voice.reference_text.empty()) fail("frames of a reference are saved with the text that they say");
  if (static_cast<int64_t>(voice.frames.size()) > kMostFrames || voice.reference_text.size() > kMostText) {
    fail("the reference is too long to be saved");
  }
}

}  // namespace

void save_voice(const Voice& voice, const Config& config, const std::filesystem::path& file) {
  check_voice(voice, config, file.string());
  const std::string header = header_of(voice, config, file.string());
  StagedFile staged(file);
  staged.write(std::as_bytes(std::span(header)));
  staged.write(std::as_bytes(std::span(voice.speaker)));
  staged.write(std::as_bytes(std::span(voice.frames)));
  staged.commit();
}

Voice load_voice(const std::filesystem::path& file, const Config& config) {
  try {
    return VoiceReader(file, config).read();
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
}

}  // namespace ref::tts
