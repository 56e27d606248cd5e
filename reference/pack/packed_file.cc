// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/packed_file.h"

#include "reference/core/error.h"
#include "reference/core/shape_text.h"
#include "reference/pack/image.h"

namespace ref {
namespace {

constexpr std::string_view kLayoutKey = "layout.";

class Assembler {
 public:
  Assembler(const std::string& name, const std::map<std::string, StoredBytes>& tensors) : name_(name), tensors_(tensors) {}

  Matrix matrix(const std::string& key, const std::string& text) {
    Matrix matrix = {};
    matrix.layout.size = sizeof matrix.layout;
    if (omni_layout_from_text(text.c_str(), &matrix.layout) != OMNI_OK) {
      fail(key, "has the layout \"" + text.substr(0, 96) + "\", which this version cannot read: pack the model again");
    }
    const omni_layout& layout = matrix.layout;
    if (layout.format > OMNI_FORMAT_W32) fail(key, "has the layout \"" + text + "\", which is none of a packed matrix");
    size_t codes = 0, scales = 0;
    if (omni_packed_size(&layout, &codes) != OMNI_OK || omni_scales_size(&layout, &scales) != OMNI_OK) {
      fail(key, "has the layout \"" + text + "\": " + omni_last_error());
    }
    matrix.codes = take(key + ".codes", "U8", {static_cast<int64_t>(codes)});
    if (scales != 0) matrix.scales = take_scales(key, layout, scales);
    if (tensors_.contains(key + ".permutation")) matrix.permutation = take_permutation(key + ".permutation", layout.k);
    return matrix;
  }

  Plain plain(const std::string& key, const StoredBytes& tensor) {
    check_alignment(key, tensor.bytes);
    Plain plain = {};
    plain.shape = tensor.shape;
    plain.bytes = tensor.bytes;
    if (tensor.dtype == "BF16") {
      plain.type = OMNI_DTYPE_BF16;
    } else if (tensor.dtype == "F16") {
      plain.type = OMNI_DTYPE_F16;
    } else if (tensor.dtype == "F32") {
      plain.type = OMNI_DTYPE_F32;
    } else {
      fail(key, "has the type " + tensor.dtype + " and belongs to no matrix");
    }
    return plain;
  }

  bool taken(const std::string& key) const { return taken_.contains(key); }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(name_ + ": tensor \"" + key + "\" " + what);
  }

  void check_alignment(const std::string& key, Bytes bytes) const {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % kImageAlignment != 0 && !bytes.empty()) fail(key, "is not 64-byte aligned");
  }

  const StoredBytes& at(const std::string& key, const char* dtype, const std::vector<int64_t>& shape) {
    const auto found = tensors_.find(key);
    if (found == tensors_.end()) throw Error(name_ + ": has no tensor \"" + key + "\"");
    const StoredBytes& tensor = found->second;
    if (tensor.dtype != dtype || tensor.shape != shape) {
      fail(key, "is " + tensor.dtype + " " + shape_text(tensor.shape) + ", its layout says " + dtype + " " + shape_text(shape));
    }
    taken_[key] = true;
    return tensor;
  }

  Bytes take(const std::string& key, const char* dtype, const std::vector<int64_t>& shape) {
    const StoredBytes& tensor = at(key, dtype, shape);
    check_alignment(key, tensor.bytes);
    return tensor.bytes;
  }

  // Zero points are a tensor for readers; the kernels take them directly behind the scales.
  Bytes take_scales(const std::string& key, const omni_layout& layout, size_t bytes) {
    const int64_t groups = layout.k / layout.group + (layout.k % layout.group != 0 ? 1 : 0);
    std::vector<int64_t> shape = {groups, layout.n};
    if (layout.format == OMNI_FORMAT_TG4) shape.push_back(2);
    const Bytes scales = take(key + ".scales", dtype_name(static_cast<omni_dtype>(layout.scale_type)), shape);
    if ((layout.flags & OMNI_LAYOUT_ZEROS) == 0) return scales;
    const Bytes zeros = at(key + ".zeros", "U8", shape).bytes;
    if (scales.data() + scales.size() != zeros.data() || scales.size() + zeros.size() != bytes) {
      fail(key + ".zeros", "does not follow the scales");
    }
    return {scales.data(), bytes};
  }

  std::span<const int32_t> take_permutation(const std::string& key, int64_t k) {
    const Bytes bytes = take(key, "I32", {k});
    const std::span<const int32_t> permutation(reinterpret_cast<const int32_t*>(bytes.data()), static_cast<size_t>(k));
    std::vector<bool> seen(permutation.size());
    for (const int32_t input : permutation) {
      if (input < 0 || input >= k || seen[static_cast<size_t>(input)]) fail(key, "is no permutation of its inputs");
      seen[static_cast<size_t>(input)] = true;
    }
    return permutation;
  }

  const std::string& name_;
  const std::map<std::string, StoredBytes>& tensors_;
  std::map<std::string, bool> taken_;
};

}  // namespace

void check_format(const std::string& name, const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormatName) throw Error(name + ": is no packed model");
  const auto version = metadata.find("format_version");
  const std::string given = version == metadata.end() ? "none" : version->second.substr(0, 20);
  if (given != kFormatVersion) {
    throw Error(name + ": has the format version " + given + ", this program reads " + kFormatVersion + ": pack the model again");
  }
}

std::shared_ptr<ModelWeights> assemble(const std::string& name, const std::map<std::string, StoredBytes>& tensors,
                                       const Metadata& metadata) {
  auto weights = std::make_shared<ModelWeights>();
  Assembler assembler(name, tensors);
  for (const auto& [key, value] : metadata) {
    if (!key.starts_with(kLayoutKey)) continue;
    const std::string matrix = key.substr(kLayoutKey.size());
    weights->matrices.emplace(matrix, assembler.matrix(matrix, value));
  }
  for (const auto& [key, tensor] : tensors) {
    if (assembler.taken(key) || key.starts_with(kPadPrefix)) continue;
    weights->plains.emplace(key, assembler.plain(key, tensor));
  }
  return weights;
}

}  // namespace ref
