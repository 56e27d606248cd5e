// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/pack/part_wishes.h"

#include "reference/core/weight_path.h"

namespace ref::tts {
namespace {

PackOptions predictor_options(const PackOptions& options) {
  PackOptions predictor = options;
  predictor.weights = options.speech.predictor.value_or(options.weights);
  predictor.group = options.speech.predictor_group.value_or(options.group);
  predictor.head = options.speech.predictor_head.value_or(options.head);
  return predictor;
}

bool is_int4(WeightType type) { return type == WeightType::kW4A8 || type == WeightType::kW4A16; }

}  // namespace

MatrixWish part_wish(const PackOptions& options, Part part, bool source_fp32) {
  const MatrixWish kept = {.type = WeightType::kKeep, .fp32 = source_fp32};
  switch (part) {
    case Part::kTalker:
      return layer_wish(options);
    case Part::kHead:
      return head_wish(options);
    case Part::kPredictor:
      return layer_wish(predictor_options(options));
    case Part::kPredictorHead:
      return head_wish(predictor_options(options));
    case Part::kPredictorInput: {
      MatrixWish wish = layer_wish(predictor_options(options));
      // One matrix in front of all layers, read as often as they: 8 bits cost a megabyte more than 4.
      if (is_int4(wish.type)) wish = {.type = WeightType::kW8A8};
      return wish;
    }
    case Part::kDecoder:
      // Kept in fp32 also where bf16 would hold every value: the form of its weights is what makes its arithmetic fp32.
      return options.speech.codec == CodecType::kFp32 ? MatrixWish{.type = WeightType::kKeep, .fp32 = true}
                                                      : MatrixWish{.type = WeightType::kBf16};
    case Part::kText:
      return {.type = WeightType::kKeep};
    case Part::kEncoder:
    case Part::kSpeaker:
      break;
  }
  return kept;
}

std::map<std::string, std::string> part_facts(const PackOptions& options) {
  std::map<std::string, std::string> facts = option_facts("qwen3_tts", options);
  const PackOptions predictor = predictor_options(options);
  facts["predictor"] = weight_type_name(predictor.weights);
  facts["predictor_group"] = std::to_string(predictor.group);
  facts["predictor_head"] = head_type_name(predictor.head);
  facts["codec"] = options.speech.codec == CodecType::kFp32 ? "fp32" : "bf16";
  facts["encoders"] = options.speech.encoders ? "true" : "false";
  return facts;
}

}  // namespace ref::tts
