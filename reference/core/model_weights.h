// SPDX-License-Identifier: Apache-2.0
// The weights of a model as a decoder takes them: packed matrices and plain tensors by name, whoever owns the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"

namespace ref {

using Bytes = std::span<const std::byte>;

// A packed matrix [N][K] of y = x W^T.
struct Matrix {
  omni_layout layout;                         // tg4, w4s, w8s, w16 or w32
  Bytes codes;                                // 64-byte aligned
  Bytes scales;                               // 64-byte aligned; empty for w16 and w32
  std::span<const int32_t> permutation = {};  // act-order: input k is x[permutation[k]]; else empty
};

// A row-major tensor: norms, biases, gates, an embedding that only serves lookups.
struct Plain {
  omni_dtype type;  // OMNI_DTYPE_BF16, OMNI_DTYPE_F16 or OMNI_DTYPE_F32
  std::vector<int64_t> shape;
  Bytes bytes;  // 64-byte aligned
};

struct ModelWeights {
  std::string name;       // the directory, for error lines
  nlohmann::json config;  // its config.json
  std::map<std::string, Matrix> matrices;
  std::map<std::string, Plain> plains;
  std::vector<std::shared_ptr<const void>> storage;  // keeps the bytes alive

  // Throw Error naming the model and the tensor when it is absent or of another shape.
  const Matrix& matrix(const std::string& tensor, int64_t n, int64_t k) const;
  const Plain& plain(const std::string& tensor, const std::vector<int64_t>& shape) const;
  const Plain* find_plain(const std::string& tensor) const;
  const Matrix* find_matrix(const std::string& tensor) const;
  // Codes, scales, permutations and plain tensors.
  uint64_t bytes() const;
};

// Values of a plain tensor, widened exactly.
std::vector<float> widen(const Plain& plain);

}  // namespace ref
