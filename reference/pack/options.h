// SPDX-License-Identifier: Apache-2.0
// What a packed model is to be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"

namespace ref {

// How the linear layers are stored. kKeep: bf16 and fp16 sources as w16 where exact, else w32; int4 sources as they are (tg4 unless
// asked otherwise).
enum class WeightType : uint8_t { kKeep, kBf16, kW8A8, kW4A8, kW4A16 };
enum class HeadType : uint8_t { kKeep, kBf16, kW8, kW4 };
enum class Quantiser : uint8_t { kNearest, kSearch, kGptq };

enum class CodecType : uint8_t { kFp32, kBf16 };

// Parts of a speech model. What is unset is as the options of the language model say.
struct SpeechOptions {
  std::optional<WeightType> predictor = {};  // layers of the code predictor
  std::optional<int64_t> predictor_group = {};
  std::optional<HeadType> predictor_head = {};
  CodecType codec = CodecType::kFp32;  // matrices of the codec's decoder
  bool encoders = true;                // what reads a reference recording
};

class Calibration;  // activation statistics of a text: reference/pack/calibration.h

struct PackOptions {
  WeightType weights = WeightType::kW4A8;
  int64_t group = 128;  // inputs of one scale: 32, 64, 128, 256, or 0 for the whole row; of int4 sources their own
  bool symmetric = false;
  HeadType head = HeadType::kW8;
  int64_t head_group = 64;     // of a 4-bit head
  bool head_symmetric = true;  // likewise
  Quantiser quantiser = Quantiser::kSearch;
  bool bf16_zeros = false;             // w4a16 asymmetric, kNearest: zeros rounded to bf16 (those of a search are)
  bool fp32_scales = false;            // scale arrays in fp32 also where bf16 would hold them
  std::vector<std::string> keep = {};  // glob patterns of modules that stay as they are; gates always do
  bool strict = false;                 // a tensor that is no part of the model is an error, not a note
  Calibration* calibration = nullptr;  // weights the search; needed, with factors, by kGptq
  SpeechOptions speech = {};
};

}  // namespace ref
