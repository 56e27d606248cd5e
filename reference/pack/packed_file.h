// SPDX-License-Identifier: Apache-2.0
// A packed model from its tensors, wherever they lie: every rule of the format is checked here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/core/model_weights.h"

namespace ref {

struct StoredBytes {
  std::string dtype;
  std::vector<int64_t> shape;
  Bytes bytes;
};

using Metadata = std::map<std::string, std::string>;

// Matrices and plain tensors. `name` begins error lines. Throws Error naming the tensor that is not as its layout demands.
std::shared_ptr<ModelWeights> assemble(const std::string& name, const std::map<std::string, StoredBytes>& tensors,
                                       const Metadata& metadata);

// Throws Error unless the metadata says that this is a packed model of the version that is read here.
void check_format(const std::string& name, const Metadata& metadata);

}  // namespace ref
