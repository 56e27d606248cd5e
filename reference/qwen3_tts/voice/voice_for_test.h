// SPDX-License-Identifier: Apache-2.0
// Models, recordings and observers for the tests of the encoders.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/pack/plan.h"
#include "reference/qwen3_tts/pack/synthetic.h"
#include "reference/qwen3_tts/voice/encoders.h"
#include "tools/common/safetensors.h"

namespace ref::tts::test {

using Weights = std::shared_ptr<const ModelWeights>;

inline PackOptions kept(bool encoders = true) {
  PackOptions options{.weights = WeightType::kKeep, .head = HeadType::kKeep};
  options.speech.encoders = encoders;
  return options;
}

// Empty where OMNI_GOLDENS does not have it.
inline std::filesystem::path golden(const std::string& path) {
  const char* goldens = std::getenv("OMNI_GOLDENS");
  const std::filesystem::path there = std::filesystem::path(goldens == nullptr ? "" : goldens) / "tts" / path;
  return std::filesystem::exists(there) ? there : std::filesystem::path();
}

inline Weights load(const std::filesystem::path& directory, bool encoders = true) {
  return pack_in_memory(Checkpoint::open(directory), kept(encoders), nullptr, {}, nullptr);
}

// Of random weights; only what the encoders read.
inline Weights synthetic(const char* name) {
  const nlohmann::json config = synthetic_config(name);
  PackPlan plan = plan_synthetic(config, kept());
  const auto of_others = [](const auto& part) {
    return !part.name.starts_with("encoder.") && !part.name.starts_with("speaker_encoder.");
  };
  std::erase_if(plan.matrices, of_others);
  std::erase_if(plan.plains, of_others);
  const auto weights = std::make_shared<ModelWeights>(*pack_plan_in_memory(plan, name, nullptr));
  weights->config = config;
  return weights;
}

// A few gliding tones and noise.
inline std::vector<float> speech(int64_t samples) {
  std::vector<float> out(static_cast<size_t>(samples));
  uint32_t seed = 1;
  double phase = 0, slow = 0;
  for (float& sample : out) {
    slow += 0.0003;
    phase += 0.03 + 0.02 * std::sin(slow);
    seed = seed * 1664525 + 1013904223;
    const double noise = static_cast<double>(seed >> 8) / (1 << 24) - 0.5;
    // Rounded to a grid, so that the bits of libm's sine do not matter.
    const double value = 0.3 * std::sin(phase) + 0.1 * std::sin(3 * phase) * std::sin(slow * 5) + 0.05 * noise;
    sample = static_cast<float>(std::lround(value * 4096)) / 4096;
  }
  return out;
}

// [time][channels] of each stage.
class Stages final : public Observer {
 public:
  struct Stage {
    int64_t rows = 0, columns = 0;
    std::vector<float> values;
  };
  void tensor(const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype, const void* data,
              int64_t ld) override {
    Stage& stage = stages[name];
    EXPECT_EQ(position, stage.rows) << name << ": rows are missing or come twice";
    stage.columns = columns;
    stage.rows += rows;
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = static_cast<const float*>(data) + row * ld;
      stage.values.insert(stage.values.end(), from, from + columns);
    }
  }
  std::map<std::string, Stage> stages;
};

// Largest difference to a tensor of a golden file, [rows][columns] or, `turned`, [columns][rows].
inline double difference(const Stages::Stage& stage, const omni_files::Tensor& tensor, bool turned) {
  const std::vector<float> expected = tensor.as<float>();
  EXPECT_EQ(expected.size(), stage.values.size());
  if (expected.size() != stage.values.size()) return INFINITY;
  double most = 0;
  for (int64_t t = 0; t < stage.rows; ++t) {
    for (int64_t c = 0; c < stage.columns; ++c) {
      const int64_t at = turned ? c * stage.rows + t : t * stage.columns + c;
      const double away = std::fabs(static_cast<double>(stage.values[static_cast<size_t>(t * stage.columns + c)]) -
                                    static_cast<double>(expected[static_cast<size_t>(at)]));
      most = std::isnan(away) ? INFINITY : std::max(most, away);
    }
  }
  return most;
}

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace ref::tts::test
