// SPDX-License-Identifier: Apache-2.0
// The data section of a packed model: its tensors, where each of them lies, and the header of the file that holds it.
// docs/formats/packed-model.md describes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference/pack/plan.h"

namespace ref {

inline constexpr uint64_t kImageAlignment = 64;
inline constexpr const char* kPadPrefix = "__pad.";  // of what fills a gap between tensors
inline constexpr const char* kFormatName = "omni-packed";
inline constexpr const char* kFormatVersion = "1";

struct StoredTensor {
  std::string name;
  std::string dtype;  // of safetensors
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // in the data section
  uint64_t bytes = 0;
};

struct Image {
  std::vector<StoredTensor> tensors;  // ascending offsets, without a gap
  uint64_t bytes = 0;                 // of the data section
  std::map<std::string, std::string> metadata;
  std::map<std::string, size_t> index;  // of tensors, by name
};

// Throws Error when the sizes do not fit 63 bits.
Image make_image(const PackPlan& plan);

// Header length and header, padded so that the data begins at a multiple of 64. `digests` by tensor, 64 hexadecimal digits each;
// the length does not depend on them.
std::string header_text(const Image& image, const std::vector<std::string>& digests);

// "BF16", "F16", "F32".
const char* dtype_name(omni_dtype type);

}  // namespace ref
