// SPDX-License-Identifier: Apache-2.0
// Codecs for tests: those of the golden checkpoints, and of random weights in any shape.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/half.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/pack/plan.h"
#include "reference/pack/sha256.h"
#include "reference/qwen3_tts/codec/decoder.h"
#include "reference/qwen3_tts/pack/source_for_test.h"
#include "reference/qwen3_tts/pack/synthetic.h"
#include "tests/support/golden_file.h"
#include "tools/common/safetensors.h"

namespace ref::tts::test {

using Weights = std::shared_ptr<const ModelWeights>;

inline PackOptions codec_options(CodecType codec) {
  PackOptions options{.weights = WeightType::kKeep, .head = HeadType::kKeep};
  options.speech = {.codec = codec, .encoders = false};
  return options;
}

// Of a golden checkpoint, nullptr where it is not here. Kept: many tests ask for the same.
inline Weights golden_codec(const std::string& model, CodecType codec = CodecType::kFp32) {
  static std::map<std::pair<std::string, CodecType>, Weights> kept;
  Weights& weights = kept[{model, codec}];
  const std::filesystem::path path = source_path(model);
  if (!weights && !path.empty()) weights = pack_in_memory(Checkpoint::open(path), codec_options(codec), nullptr, {}, nullptr);
  return weights;
}

// A codec of random weights. `change` sees the decoder's config of the synthetic model `name`.
inline Weights random_codec(const std::string& name, CodecType codec, const std::function<void(nlohmann::json&)>& change = {}) {
  nlohmann::json config = synthetic_config(name);
  if (change) change(config["speech_tokenizer"]["decoder_config"]);
  PackPlan plan = plan_synthetic(config, codec_options(codec));
  const auto of_others = [](const auto& part) { return !part.name.starts_with("decoder."); };
  std::erase_if(plan.matrices, of_others);
  std::erase_if(plan.plains, of_others);
  const auto weights = std::make_shared<ModelWeights>(*pack_plan_in_memory(plan, name, nullptr));
  weights->config = config;
  return weights;
}

inline int64_t codes_of(const Weights& weights) { return read_config(weights->config, weights->name).decoder.codebook_size; }

inline std::vector<Frame> random_frames(size_t count, int64_t codes, uint32_t seed = 1) {
  std::vector<Frame> frames(count);
  for (Frame& frame : frames) {
    for (int32_t& code : frame) {
      seed = seed * 1664525 + 1013904223;
      code = static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(codes));
    }
  }
  return frames;
}

// Feeds calls of the given sizes, the last of them over and over.
inline std::vector<float> decode_in(CodecDecoder* decoder, const std::vector<Frame>& frames, const std::vector<size_t>& calls,
                                    Observer* observer = nullptr) {
  std::vector<float> samples(frames.size() * kFrameSamples);
  for (size_t done = 0, call = 0; done < frames.size(); ++call) {
    const size_t count = std::min(calls[std::min(call, calls.size() - 1)], frames.size() - done);
    decoder->decode({&frames[done], count}, {&samples[done * kFrameSamples], count * kFrameSamples}, observer);
    done += count;
  }
  return samples;
}

inline std::vector<float> decode_all(const Weights& weights, const std::vector<Frame>& frames, CodecDecoderOptions options = {}) {
  options.max_frames = 256;
  CodecDecoder decoder(weights, options);
  return decode_in(&decoder, frames, {frames.size()});
}

inline testing::AssertionResult same_samples(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " samples";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return testing::AssertionFailure() << "frame " << i / kFrameSamples << ", sample " << i % kFrameSamples << ": " << a[i]
                                         << " and " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

inline std::string digest_of(std::span<const float> samples) {
  Sha256 sha;
  sha.add(std::as_bytes(samples));
  return sha.finish();
}

// All rows of every stage, widened, [time][channels].
class StageRecorder final : public Observer {
 public:
  struct Stage {
    int64_t columns = 0;
    std::vector<float> values;
  };
  void tensor(const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype type, const void* data,
              int64_t ld) override {
    Stage& stage = stages[name];
    stage.columns = columns;
    EXPECT_EQ(position * columns, static_cast<int64_t>(stage.values.size())) << name << ": rows are missing or come twice";
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        const auto at = static_cast<size_t>(row * ld + i);
        stage.values.push_back(type == OMNI_DTYPE_F32 ? static_cast<const float*>(data)[at]
                                                      : widen_bf16(static_cast<const uint16_t*>(data)[at]));
      }
    }
  }
  std::map<std::string, Stage> stages;
};

// Of a golden file, or empty with a reason to skip.
inline std::string golden_file(const std::string& name) { return okl::test::golden_path("tts", "golden/" + name + ".safetensors"); }

inline std::vector<Frame> golden_frames(const omni_files::SafetensorsFile& file, const std::string& name) {
  std::vector<int32_t> ids;
  for (const int64_t id : file.at(name).as<int64_t>()) ids.push_back(static_cast<int32_t>(id));
  return frames_of(ids, int64_t{1} << 20);
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    most = std::max(most, difference == difference ? difference : 1e300);
  }
  return most;
}

}  // namespace ref::tts::test
