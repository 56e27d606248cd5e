// SPDX-License-Identifier: Apache-2.0
// What tests of the decoder share: small models, ids, and an observer that keeps everything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/spark/decoder.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"

namespace ref::spark::test {

inline std::shared_ptr<const ModelWeights> load(const nlohmann::json& config, const omni_files::SafetensorsWriter& tensors) {
  const omni_files::TemporaryDirectory directory;
  omni_files::TinySpark::write(directory / "m", config, tensors);
  PackOptions options;
  options.weights = WeightType::kKeep;
  options.head = HeadType::kKeep;
  return pack_in_memory(Checkpoint::open(directory / "m"), options, nullptr, {}, nullptr);
}
inline std::shared_ptr<const ModelWeights> load(const omni_files::TinySpark& model) {
  return load(model.config(), model.weights());
}

inline std::vector<int32_t> some_ids(size_t count, int32_t vocabulary) {
  std::vector<int32_t> ids(count);
  uint32_t state = 7;
  for (int32_t& id : ids) id = static_cast<int32_t>((state = state * 1664525 + 1013904223) >> 8) % vocabulary;
  return ids;
}

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Keeps the fp32 or bf16 rows of every tensor, in order of positions.
class Recorder final : public Observer {
 public:
  void tensor(const std::string& name, int64_t, int64_t rows, int64_t columns, omni_dtype type, const void* data,
              int64_t ld) override {
    std::vector<float>& values = tensors[name];
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t at = i / columns * ld + i % columns;
      values.push_back(type == OMNI_DTYPE_F32 ? static_cast<const float*>(data)[at]
                                              : widen_bf16(static_cast<const uint16_t*>(data)[at]));
    }
  }
  std::map<std::string, std::vector<float>> tensors;
};

inline DecoderOptions with(int64_t context, int64_t chunk, Precision precision = Precision::kFp32) {
  DecoderOptions options;
  options.context = context;
  options.chunk = chunk;
  options.precision = precision;
  return options;
}

}  // namespace ref::spark::test
