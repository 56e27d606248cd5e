// SPDX-License-Identifier: Apache-2.0
#include "reference/core/weight_path.h"

#include <cstring>
#include <utility>

namespace ref {
namespace {

constexpr uint32_t kAmx = OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8;
constexpr uint32_t kAvx512 = OMNI_ISA_AVX512F | OMNI_ISA_AVX512BW | OMNI_ISA_AVX512DQ | OMNI_ISA_AVX512VL;
constexpr uint32_t kAvx512Vnni = kAvx512 | OMNI_ISA_AVX512VNNI;
constexpr uint32_t kAvxVnni = OMNI_ISA_AVX2 | OMNI_ISA_AVX_VNNI;

bool has(uint32_t isa, uint32_t bits) { return (isa & bits) == bits; }

// CPUID's vendor has twelve characters, and no other processor sets a bit of the mask.
bool is_x86(const omni_machine& machine) {
  return machine.isa_hardware != 0 || machine.isa != 0 || strnlen(machine.vendor, sizeof machine.vendor) == 12;
}

constexpr std::pair<WeightType, std::string_view> kWeights[] = {{WeightType::kKeep, "keep"},
                                                                {WeightType::kBf16, "bf16"},
                                                                {WeightType::kW8A8, "w8a8"},
                                                                {WeightType::kW4A8, "w4a8"},
                                                                {WeightType::kW4A16, "w4a16"}};
constexpr std::pair<HeadType, std::string_view> kHeads[] = {
    {HeadType::kKeep, "keep"}, {HeadType::kBf16, "bf16"}, {HeadType::kW8, "w8"}, {HeadType::kW4, "w4"}};

template <typename Table, typename Type>
std::string_view name_of(const Table& table, Type type) {
  for (const auto& [value, name] : table) {
    if (value == type) return name;
  }
  return "?";
}

template <typename Type, typename Table>
std::optional<Type> value_of(const Table& table, std::string_view wanted) {
  for (const auto& [value, name] : table) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

WeightPath choose_weight_path(const omni_machine& machine, Priority priority) {
  if (!is_x86(machine)) {
    return {WeightType::kW4A16, "no x86 processor: 16-bit activations, unverified on real silicon"};
  }
  if (has(machine.isa, kAmx)) return {WeightType::kW4A8, "AMX multiplies 8-bit activations in tiles"};
  const bool avx512 = has(machine.isa, kAvx512Vnni);
  if (avx512 || has(machine.isa, kAvxVnni)) {
    const std::string unit = avx512 ? "AVX-512 VNNI" : "AVX-VNNI";
    if (priority == Priority::kSpeed) return {WeightType::kW4A8, unit + ", and priority speed: 8-bit activations"};
    return {WeightType::kW4A16, unit + ", but priority fidelity: 16-bit activations"};
  }
  return {WeightType::kW4A16, "no VNNI: 8-bit activations would gain nothing"};
}

WeightPath choose_speech_path() {
  return {WeightType::kW8A8, "8 bits speak as the source does, 4 bits (w4a8) are faster and change what is said"};
}

WeightType choose_predictor(WeightType talker) {
  const bool narrow = talker == WeightType::kW4A8 || talker == WeightType::kW4A16;
  return narrow ? WeightType::kW8A8 : talker;
}

HeadType default_head(WeightType layers) {
  if (layers == WeightType::kKeep) return HeadType::kKeep;
  return layers == WeightType::kBf16 ? HeadType::kBf16 : HeadType::kW8;
}

int64_t default_group(WeightType layers) { return layers == WeightType::kW8A8 ? 0 : 128; }

SpeechOptions speech_options(const SpeechWishes& wishes, WeightType talker) {
  const WeightType predictor = wishes.predictor.value_or(choose_predictor(talker));
  return {.predictor = predictor,
          .predictor_group = wishes.group.value_or(default_group(predictor)),
          .predictor_head = wishes.predictor_head ? wishes.predictor_head : wishes.head.value_or(default_head(predictor)),
          .codec = wishes.codec,
          .encoders = wishes.encoders};
}

std::string_view weight_type_name(WeightType type) { return name_of(kWeights, type); }
std::optional<WeightType> parse_weight_type(std::string_view name) { return value_of<WeightType>(kWeights, name); }
std::string_view head_type_name(HeadType type) { return name_of(kHeads, type); }
std::optional<HeadType> parse_head_type(std::string_view name) { return value_of<HeadType>(kHeads, name); }

}  // namespace ref
