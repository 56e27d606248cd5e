// SPDX-License-Identifier: Apache-2.0
#include "reference/core/model_weights.h"

#include <cstring>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/shape_text.h"

namespace ref {
const Matrix* ModelWeights::find_matrix(const std::string& tensor) const {
  const auto found = matrices.find(tensor);
  return found == matrices.end() ? nullptr : &found->second;
}

const Plain* ModelWeights::find_plain(const std::string& tensor) const {
  const auto found = plains.find(tensor);
  return found == plains.end() ? nullptr : &found->second;
}

const Matrix& ModelWeights::matrix(const std::string& tensor, int64_t n, int64_t k) const {
  const Matrix* found = find_matrix(tensor);
  if (found == nullptr) throw Error(name + ": has no matrix \"" + tensor + "\"");
  if (found->layout.n != n || found->layout.k != k) {
    throw Error(name + ": matrix \"" + tensor + "\" is " + shape_text({found->layout.n, found->layout.k}) + ", the config says " +
                shape_text({n, k}));
  }
  return *found;
}

const Plain& ModelWeights::plain(const std::string& tensor, const std::vector<int64_t>& shape) const {
  const Plain* found = find_plain(tensor);
  if (found == nullptr) throw Error(name + ": has no tensor \"" + tensor + "\"");
  if (found->shape != shape) {
    throw Error(name + ": tensor \"" + tensor + "\" is " + shape_text(found->shape) + ", the config says " + shape_text(shape));
  }
  return *found;
}

uint64_t ModelWeights::bytes() const {
  uint64_t sum = 0;
  for (const auto& [key, matrix] : matrices) sum += matrix.codes.size() + matrix.scales.size() + matrix.permutation.size_bytes();
  for (const auto& [key, plain] : plains) sum += plain.bytes.size();
  return sum;
}

std::vector<float> widen(const Plain& plain) {
  const size_t width = plain.type == OMNI_DTYPE_F32 ? 4 : 2;
  std::vector<float> values(plain.bytes.size() / width);
  if (width == 4) {
    if (!values.empty()) std::memcpy(values.data(), plain.bytes.data(), plain.bytes.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, plain.bytes.data() + 2 * i, 2);
    values[i] = plain.type == OMNI_DTYPE_BF16 ? widen_bf16(bits) : widen_f16(bits);
  }
  return values;
}

}  // namespace ref
