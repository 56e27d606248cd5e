// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/models.h"

#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/qwen3_tts/pack/pack_plan.h"
#include "reference/spark/pack_plan.h"
#include "reference/spark/text_calibration.h"

namespace ref {
namespace {

struct Model {
  const char* type;
  PackPlan (*plan)(const Checkpoint&, const nlohmann::json&, const PackOptions&);
  std::unique_ptr<Calibration> (*calibrate)(const Checkpoint&, const nlohmann::json&, const std::vector<int32_t>&,
                                            const CalibrationOptions&);
  void (*check)(const ModelWeights&);
};
constexpr Model kModels[] = {{"spark2_5", spark::plan_pack, spark::calibrate, spark::check_weights},
                             {"qwen3_tts", tts::plan_pack, tts::calibrate, tts::check_weights}};

const Model& model_of(const nlohmann::json& config, const std::string& name) {
  const nlohmann::json type = config.contains("model_type") ? config["model_type"] : nlohmann::json();
  for (const Model& model : kModels) {
    if (type == model.type) return model;
  }
  throw Error(name + ": \"model_type\" " + type.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80) +
              " is not known here; spark2_5 and qwen3_tts are");
}

}  // namespace

PackPlan plan_model(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options) {
  return model_of(config, (checkpoint.directory() / "config.json").string()).plan(checkpoint, config, options);
}

std::unique_ptr<Calibration> calibrate_model(const Checkpoint& checkpoint, const nlohmann::json& config,
                                             const std::vector<int32_t>& ids, const CalibrationOptions& options) {
  return model_of(config, (checkpoint.directory() / "config.json").string()).calibrate(checkpoint, config, ids, options);
}

void check_model(const ModelWeights& weights) { model_of(weights.config, weights.name).check(weights); }

}  // namespace ref
