// SPDX-License-Identifier: Apache-2.0
// Rows of the embedding by id, in fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/backend.h"
#include "reference/core/model_weights.h"
#include "reference/spark/config.h"

namespace ref::spark {

class Embedding {
 public:
  // From `model.embedding.weight`; a model without it gathers from its head, which then is w16 or w32.
  Embedding(const Config& config, const ModelWeights& weights, const Backend& backend);

  // out[count][hidden]; ids have been checked.
  void gather(const int32_t* ids, int64_t count, float* out) const;
  uint64_t row_bytes() const { return row_bytes_; }

 private:
  const Backend& backend_;
  std::vector<float> wide_;  // of an fp16 table
  Bytes table_;
  int64_t hidden_;
  uint64_t row_bytes_;
  Plan plan_;
};

}  // namespace ref::spark
