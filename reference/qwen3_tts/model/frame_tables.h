// SPDX-License-Identifier: Apache-2.0
// The codec side's embeddings, all as wide as the talker: one table of codes and control ids for codebook 0, one for each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/core/model_weights.h"
#include "reference/core/row_table.h"
#include "reference/qwen3_tts/config.h"

namespace ref::tts {

class FrameTables {
 public:
  FrameTables(const Config& config, const ModelWeights& weights);

  // C(id) of the codec vocabulary. Throws Error naming an id outside of it.
  void codec(int32_t id, float* row) const;
  // E of codebook 1..15. Likewise.
  void code(int64_t codebook, int32_t code, float* row) const;
  // C(c_0) + E_0(c_1) + ... + E_14(c_15), in this order. Likewise; `row` is unchanged then.
  void frame(const Frame& frame, float* row) const;

  uint64_t frame_bytes() const;

 private:
  void check_code(int64_t codebook, int32_t code) const;

  RowTable codec_;
  std::vector<RowTable> codes_;
};

}  // namespace ref::tts
