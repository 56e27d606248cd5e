// SPDX-License-Identifier: Apache-2.0
// Requests as the goldens hold them.
#include <nlohmann/json.hpp>

#include "reference/core/config_reader.h"
#include "reference/core/shape_text.h"
#include "reference/qwen3_tts/model/parity.h"

namespace ref::tts {
namespace {

using nlohmann::json;
using omni_files::SafetensorsFile;
using omni_files::Tensor;

[[noreturn]] void misfit(const SafetensorsFile& golden, const std::string& name, const std::string& wanted) {
  const Tensor& tensor = golden.at(name);
  throw Error(golden.name() + ": tensor \"" + name + "\" is " + tensor.dtype + " " + shape_text(tensor.shape) + ", not " + wanted);
}

std::vector<int32_t> read_ids(const SafetensorsFile& golden, const std::string& name) {
  const Tensor& tensor = golden.at(name);
  if (tensor.dtype != "I64") misfit(golden, name, "I64");
  std::vector<int32_t> ids;
  for (const int64_t id : tensor.as<int64_t>()) {
    if (id != static_cast<int32_t>(id)) throw Error(golden.name() + ": tensor \"" + name + "\" holds " + std::to_string(id));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<Frame> read_frames(const SafetensorsFile& golden, const std::string& name) {
  const Tensor& tensor = golden.at(name);
  if (tensor.shape.size() != 2 || tensor.shape[1] != kCodebooks) misfit(golden, name, "[frames, 16]");
  const std::vector<int32_t> ids = read_ids(golden, name);
  std::vector<Frame> frames(ids.size() / kCodebooks);
  for (size_t i = 0; i < ids.size(); ++i) frames[i / kCodebooks][i % kCodebooks] = ids[i];
  return frames;
}

json read_info(const SafetensorsFile& golden) {
  const auto found = golden.metadata().find("info");
  if (found == golden.metadata().end()) throw Error(golden.name() + ": has no metadata \"info\"");
  json info = json::parse(found->second, nullptr, false);
  if (!info.is_object()) throw Error(golden.name() + ": metadata \"info\" is no JSON object");
  return info;
}

// The prompt's row of the speaker is PAD of the text side plus the speaker: it comes behind the three rows of the role and the
// tags.
std::vector<float> speaker_of_prompt(const SafetensorsFile& golden, int64_t row, int64_t width) {
  const Tensor &rows = golden.at("prompt_embeds"), &pad = golden.at("tts_pad_embed");
  if (rows.dtype != "F32" || rows.shape.size() != 2 || rows.shape[0] <= row || rows.shape[1] != width) {
    misfit(golden, "prompt_embeds", "F32 [rows, " + std::to_string(width) + "]");
  }
  if (pad.dtype != "F32" || pad.elements() != width) misfit(golden, "tts_pad_embed", "F32 [" + std::to_string(width) + "]");
  const std::vector<float> all = rows.as<float>(), pads = pad.as<float>();
  std::vector<float> speaker(static_cast<size_t>(width));
  for (size_t i = 0; i < speaker.size(); ++i) speaker[i] = all[static_cast<size_t>(row * width) + i] - pads[i];
  return speaker;
}

}  // namespace

GoldenRequest read_golden_request(const Talker& talker, const SafetensorsFile& golden, const std::vector<float>* speaker) {
  const Config& config = talker.config();
  const json object = read_info(golden);
  const ConfigReader info(object, golden.name() + ": info");
  GoldenRequest request;
  request.language = info.word("language");
  request.streaming_text = !info.flag("non_streaming_mode", false);
  request.ids.text = read_ids(golden, "input_ids");
  if (golden.find("instruct_ids") != nullptr) request.ids.instruct = read_ids(golden, "instruct_ids");
  request.frames = read_frames(golden, "codes");
  request.voice.speaker_name = info.word("speaker", "");
  if (config.type != ModelType::kBase) return request;

  const int64_t tags = request.language == "auto" ? 3 : 4;
  request.voice.speaker = speaker != nullptr ? *speaker : speaker_of_prompt(golden, 3 + tags, config.talker.stack.hidden);
  if (golden.find("ref_ids") == nullptr) return request;
  request.ids.reference = read_ids(golden, "ref_ids");
  request.voice.frames = read_frames(golden, "decoder_codes");
  if (request.voice.frames.size() < request.frames.size()) misfit(golden, "decoder_codes", "as long as codes");
  request.voice.frames.resize(request.voice.frames.size() - request.frames.size());
  return request;
}

}  // namespace ref::tts
