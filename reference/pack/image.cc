// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/image.h"

#include <nlohmann/json.hpp>

#include "omni/version.h"
#include "reference/core/error.h"

namespace ref {
namespace {

uint64_t element_bytes(const std::string& dtype) {
  if (dtype == "U8") return 1;
  return dtype == "BF16" || dtype == "F16" ? 2 : 4;
}

class Builder {
 public:
  // `aligned`: every tensor begins at a multiple of 64, as in a packed model.
  explicit Builder(bool aligned) : aligned_(aligned) {}

  // `attached`: directly behind the tensor before it, whatever its alignment.
  void add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, bool attached = false) {
    if (!attached) align();
    uint64_t bytes = element_bytes(dtype);
    for (const int64_t extent : shape) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) bytes = UINT64_MAX;
    }
    uint64_t end;
    if (__builtin_add_overflow(image_.bytes, bytes, &end) || end > INT64_MAX) {
      throw Error("tensor \"" + name + "\" does not fit a file");
    }
    if (!image_.index.emplace(name, image_.tensors.size()).second) throw Error("tensor \"" + name + "\" is planned twice");
    image_.tensors.push_back({name, dtype, std::move(shape), image_.bytes, bytes});
    image_.bytes = end;
  }

  void add(const MatrixPlan& plan) {
    size_t codes = 0, scales = 0;
    check_omni(omni_packed_size(&plan.layout, &codes), plan.name);
    check_omni(omni_scales_size(&plan.layout, &scales), plan.name);
    image_.metadata["layout." + plan.name] = layout_text(plan.layout);
    const size_t first = image_.tensors.size();
    add(plan.name + ".codes", "U8", {static_cast<int64_t>(codes)});
    if (scales != 0) add_scales(plan);
    if (plan.permuted()) add(plan.name + ".permutation", "I32", {plan.layout.k});
    for (size_t i = first; plan.seldom && i < image_.tensors.size(); ++i) mark_seldom(image_.tensors[i].name);
  }

  void add(const PlainPlan& plan) {
    add(plan.name, dtype_name(plan.type), plan.shape);
    if (plan.lookup) image_.metadata["lookup." + plan.name] = "rows";
    if (plan.seldom) mark_seldom(plan.name);
  }

  Image finish() {
    align();
    return std::move(image_);
  }
  std::map<std::string, std::string>& metadata() { return image_.metadata; }

 private:
  void mark_seldom(const std::string& tensor) { image_.metadata["seldom." + tensor] = "whole"; }

  void add_scales(const MatrixPlan& plan) {
    const int64_t groups = (plan.layout.k + plan.layout.group - 1) / plan.layout.group;
    std::vector<int64_t> shape = {groups, plan.layout.n};
    if (plan.layout.format == OMNI_FORMAT_TG4) shape.push_back(2);
    add(plan.name + ".scales", dtype_name(static_cast<omni_dtype>(plan.layout.scale_type)), shape);
    if ((plan.layout.flags & OMNI_LAYOUT_ZEROS) != 0) add(plan.name + ".zeros", "U8", shape, true);
  }

  // Readers of safetensors accept no gap, so what fills one is a tensor itself. Matrices of usual shapes need none.
  void align() {
    const uint64_t over = image_.bytes % kImageAlignment;
    if (over == 0 || !aligned_) return;
    add(kPadPrefix + std::to_string(pads_++), "U8", {static_cast<int64_t>(kImageAlignment - over)}, true);
  }

  const bool aligned_;
  Image image_;
  int pads_ = 0;
};

}  // namespace

const char* dtype_name(omni_dtype type) {
  if (type == OMNI_DTYPE_BF16) return "BF16";
  return type == OMNI_DTYPE_F16 ? "F16" : "F32";
}

// What is not read for every token stands last, so that everything else is one block: parts of seldom use, then tables that only
// serve lookups.
Image make_image(const PackPlan& plan) {
  Builder builder(plan.file == kWeightsFile);
  for (const bool seldom : {false, true}) {
    for (const MatrixPlan& matrix : plan.matrices) {
      if (matrix.seldom == seldom) builder.add(matrix);
    }
    for (const PlainPlan& plain : plan.plains) {
      if (plain.seldom == seldom && !plain.lookup) builder.add(plain);
    }
  }
  for (const PlainPlan& plain : plan.plains) {
    if (plain.lookup) builder.add(plain);
  }
  auto& metadata = builder.metadata();
  for (const auto& [key, value] : plan.facts) metadata[key] = value;
  if (plan.file != kWeightsFile) return builder.finish();
  metadata["format"] = kFormatName;
  metadata["format_version"] = kFormatVersion;
  metadata["writer"] = std::string("omni-kernels ") + omni_version();
  return builder.finish();
}

std::string header_text(const Image& image, const std::vector<std::string>& digests) {
  nlohmann::json header = nlohmann::json::object();
  nlohmann::json& metadata = header["__metadata__"] = image.metadata;
  for (size_t i = 0; i < image.tensors.size(); ++i) {
    const StoredTensor& tensor = image.tensors[i];
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.offset, tensor.offset + tensor.bytes}}};
    metadata["sha256." + tensor.name] = digests[i];
  }
  std::string text = header.dump();
  text.resize((text.size() + 8 + kImageAlignment - 1) / kImageAlignment * kImageAlignment - 8, ' ');
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  return file + text;
}

}  // namespace ref
