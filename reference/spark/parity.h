// SPDX-License-Identifier: Apache-2.0
// Compares a decoder with golden tensors: which one departs first, by how much, and whether greedy decoding goes the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/spark/decoder.h"
#include "tools/common/safetensors.h"

namespace ref::spark {

// One golden tensor, `relative` = sqrt(sum (ours - golden)^2 / sum golden^2) over all its rows.
struct TensorParity {
  std::string name;
  double relative;
  double largest;  // difference of one element
};

// One step of greedy decoding, after the golden's tokens before it.
struct GreedyStep {
  int32_t expected, found;
  float margin;  // golden logit of the first minus that of the second choice
};

struct ParityReport {
  std::vector<TensorParity> tensors;  // in the order in which a forward pass makes them
  std::vector<GreedyStep> greedy;
  double greedy_logits = 0;  // relative, over all steps; 0 where the golden has none

  // The first tensor beyond the tolerance; a NaN is.
  const TensorParity* first_departure(double tolerance) const;
  const TensorParity* find(const std::string& name) const;
  // The first step that chooses another token.
  std::optional<size_t> first_other_token() const;
};

// Runs the golden's prompt through an empty sequence in one call, then its greedy tokens one by one. A golden holds prompt_ids [T],
// tensors by the names of the observer, [T][columns] or [positions][columns] where it has `positions`, and greedy_ids with
// greedy_logits. Throws Error naming the file and the tensor for one that does not fit the model or the context.
ParityReport compare_with_golden(Decoder& decoder, const omni_files::SafetensorsFile& golden);

}  // namespace ref::spark
