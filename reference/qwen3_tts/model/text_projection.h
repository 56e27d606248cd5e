// SPDX-License-Identifier: Apache-2.0
// Rows of text as the talker takes them: embedding, then fc2 . silu(fc1 . x + b1) + b2. Only of the ids in use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/core/row_cast.h"
#include "reference/core/row_table.h"
#include "reference/qwen3_tts/model/stack.h"

namespace ref::tts {

class TextProjection {
 public:
  TextProjection(const TalkerConfig& config, const ModelContext& context);

  // out[ids.size()][hidden]. The bits of a row do not depend on the others. Throws Error naming an id outside of the vocabulary.
  void run(std::span<const int32_t> ids, float* out) const;
  std::vector<float> operator()(std::span<const int32_t> ids) const;

  void describe(std::vector<std::string>* lines) const;

 private:
  void run_chunk(std::span<const int32_t> ids, float* out) const;

  const Backend& backend_;
  RowTable embedding_;
  int64_t hidden_;
  RowCast to_fc1_;
  omni_dtype product_type_;
  Linear fc1_, fc2_;
  const omni_plan* silu_;
  Memory embedded_, inner_, product_;
};

}  // namespace ref::tts
