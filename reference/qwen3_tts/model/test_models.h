// SPDX-License-Identifier: Apache-2.0
// What tests of the language side share: golden checkpoints and requests, and talker and predictor over them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/qwen3_tts/model/parity.h"

namespace ref::tts::test {

// The file of that path in tests/data/tts, else where OMNI_GOLDENS has it; empty when it is in neither.
inline std::filesystem::path golden_path(const std::string& path) {
  std::vector<std::filesystem::path> candidates = {std::filesystem::path(OMNI_TEST_DATA) / "tts" / path};
  if (const char* goldens = std::getenv("OMNI_GOLDENS")) candidates.push_back(std::filesystem::path(goldens) / "tts" / path);
  for (const std::filesystem::path& each : candidates) {
    if (std::filesystem::exists(each)) return each;
  }
  return {};
}

#define OMNI_NEEDS_GOLDEN(path) \
  if ((path).empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set"

inline const char* const kSmallModel = "base-tiny-bf16";
inline const char* const kSmallGolden = "golden/bf16w_fp32compute_xvec_stream.safetensors";

// As the checkpoint has it, or with all parts of the language side quantised.
inline std::shared_ptr<const ModelWeights> load(const std::filesystem::path& directory, WeightType type = WeightType::kKeep,
                                                HeadType head = HeadType::kKeep) {
  PackOptions options;
  options.weights = type;
  options.head = head;
  options.group = 32;  // widths of the golden models divide by no more
  options.quantiser = Quantiser::kNearest;
  return pack_in_memory(Checkpoint::open(directory), options, nullptr, {}, nullptr);
}
inline std::shared_ptr<const ModelWeights> small_model(WeightType type = WeightType::kKeep, HeadType head = HeadType::kKeep) {
  return load(golden_path(kSmallModel), type, head);
}

// Talker and predictor of one model.
struct Pair {
  Pair(const std::shared_ptr<const ModelWeights>& weights, Precision precision = Precision::kFp32,
       const omni_parallel* parallel = nullptr, const std::string& isa = {}, int64_t chunk = 64, int64_t context = 256)
      : talker(weights, {context, chunk, OMNI_DTYPE_BF16, precision, 0, isa, parallel}),
        predictor(weights, {precision, OMNI_DTYPE_BF16, isa, parallel}) {}
  Talker talker;
  CodePredictor predictor;
};

inline omni_files::SafetensorsFile open_golden(const std::filesystem::path& file) {
  return omni_files::SafetensorsFile::open(file.string());
}

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline SpeechSampling greedy() {
  SpeechSampling sampling;
  sampling.sample = sampling.predictor_sample = false;
  return sampling;
}

// All frames of a request, and why they ended.
struct Made {
  std::vector<Frame> frames;
  Stop stop;
};
inline Made run(Pair* pair, const Prompt& prompt, const SpeechSampling& sampling, int64_t max_frames,
                const GeneratorHooks& hooks = {}) {
  Generator generator(&pair->talker, &pair->predictor);
  generator.start(prompt, sampling, max_frames, hooks);
  Made result;
  while (const std::optional<Frame> frame = generator.next()) result.frames.push_back(*frame);
  result.stop = generator.stop();
  return result;
}

}  // namespace ref::tts::test
