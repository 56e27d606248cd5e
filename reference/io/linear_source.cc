// SPDX-License-Identifier: Apache-2.0
#include "reference/io/linear_source.h"

#include <algorithm>
#include <cmath>

#include "reference/core/error.h"
#include "reference/core/shape_text.h"
#include "reference/io/int4_words.h"

namespace ref {
namespace {

constexpr int64_t kCodesPerWord = 8;

int64_t words_of(int64_t codes) { return (codes + kCodesPerWord - 1) / kCodesPerWord; }

void expect(const TensorView& view, const std::vector<std::string>& dtypes, const std::vector<int64_t>& shape) {
  if (view.shape() == shape && std::find(dtypes.begin(), dtypes.end(), view.dtype()) != dtypes.end()) return;
  std::string allowed;
  for (const std::string& dtype : dtypes) allowed += (allowed.empty() ? "" : " or ") + dtype;
  throw Error(view.where() + " is " + view.dtype() + " " + shape_text(view.shape()) + ", expected " + allowed + " " +
              shape_text(shape));
}

// The tensors of one int4 module while it is checked.
struct Finder {
  const Checkpoint& checkpoint;
  const QuantConfig& quant;
  const QuantScheme scheme;

  const TensorView& at(const LinearSource& source, const char* suffix) const {
    const TensorView* view = checkpoint.find(source.name + suffix);
    if (view != nullptr) return *view;
    throw Error(source.codes->where() + " has no \"" + source.name + suffix + "\" beside it");
  }
  const TensorView* find(const LinearSource& source, const char* suffix) const { return checkpoint.find(source.name + suffix); }
};

void set_scales(const TensorView& view, LinearSource* source) {
  source->scales = &view;
  if (source->scales_by_channel) {
    expect(view, {"BF16", "F16", "F32"}, {source->n, source->groups()});
  } else {
    expect(view, {"BF16", "F16", "F32"}, {source->groups(), source->n});
  }
  for (int64_t i = 0; i < source->n * source->groups(); ++i) {
    if (!std::isfinite(load_float(view, i))) {
      throw Error(view.where() + " holds a scale that is not finite at element " + std::to_string(i));
    }
  }
}

// Zeros that all are 8 make the module symmetric, whatever the config calls it; the other way round is a contradiction.
void settle_zeros(const Finder& finder, LinearSource* source) {
  for (int64_t c = 0; c < source->n; ++c) {
    for (int64_t g = 0; g < source->groups(); ++g) {
      const int zero = zero_point(*source, g, c);
      if (zero == 8) continue;
      if (!finder.scheme.symmetric) return;
      throw Error(source->zeros->where() + " holds zero point " + std::to_string(zero) + " for group " + std::to_string(g) +
                  " of channel " + std::to_string(c) + ", but the config says symmetric, which is 8 everywhere");
    }
  }
  source->zeros_kind = OMNI_ZEROS_SYMMETRIC;
  source->zeros = nullptr;
}

void set_zeros(const Finder& finder, const char* suffix, omni_zeros kind, const std::vector<int64_t>& shape, LinearSource* source) {
  if (finder.scheme.symmetric && finder.find(*source, suffix) == nullptr) return;
  source->zeros = &finder.at(*source, suffix);
  source->zeros_kind = kind;
  expect(*source->zeros, {"I32"}, shape);
  settle_zeros(finder, source);
}

// Group of each input; empty when it is k / group. The kernels hold full groups, and the short one last.
std::vector<int32_t> read_g_idx(const TensorView& view, const LinearSource& source) {
  expect(view, {"I32"}, {source.k});
  std::vector<int32_t> g_idx(static_cast<size_t>(source.k));
  std::vector<int64_t> counts(static_cast<size_t>(source.groups()));
  bool in_order = true;
  for (int64_t i = 0; i < source.k; ++i) {
    const auto group = load<int32_t>(view, i);
    if (group < 0 || group >= source.groups()) {
      throw Error(view.where() + " puts input " + std::to_string(i) + " into group " + std::to_string(group) + ", expected 0 to " +
                  std::to_string(source.groups() - 1));
    }
    g_idx[static_cast<size_t>(i)] = group;
    ++counts[static_cast<size_t>(group)];
    in_order = in_order && group == i / source.group;
  }
  for (int64_t g = 0; g < source.groups(); ++g) {
    const int64_t expected = std::min(source.group, source.k - g * source.group), found = counts[static_cast<size_t>(g)];
    if (found != expected) {
      throw Error(view.where() + " puts " + std::to_string(found) + " inputs into group " + std::to_string(g) + ", expected " +
                  std::to_string(expected));
    }
  }
  if (in_order) g_idx.clear();
  return g_idx;
}

void find_gptq(const Finder& finder, LinearSource* source) {
  source->codes_format = OMNI_FORMAT_GPTQ;
  expect(*source->codes, {"I32"}, {words_of(source->k), source->n});
  set_scales(finder.at(*source, ".scales"), source);
  set_zeros(finder, ".qzeros", finder.quant.gptq_v2 ? OMNI_ZEROS_GPTQ_V2 : OMNI_ZEROS_GPTQ_V1,
            {source->groups(), words_of(source->n)}, source);
  const TensorView* g_idx = finder.find(*source, ".g_idx");
  if (g_idx == nullptr && finder.scheme.act_order) g_idx = &finder.at(*source, ".g_idx");
  if (g_idx != nullptr) source->g_idx = read_g_idx(*g_idx, *source);
}

void find_awq(const Finder& finder, LinearSource* source) {
  source->codes_format = OMNI_FORMAT_AWQ;
  expect(*source->codes, {"I32"}, {source->k, words_of(source->n)});
  set_scales(finder.at(*source, ".scales"), source);
  set_zeros(finder, ".qzeros", OMNI_ZEROS_AWQ, {source->groups(), words_of(source->n)}, source);
}

void check_weight_shape(const TensorView& view, const LinearSource& source) {
  expect(view, {"I64", "I32"}, {2});
  const bool wide = view.dtype() == "I64";
  const std::vector<int64_t> found = {wide ? load<int64_t>(view, 0) : load<int32_t>(view, 0),
                                      wide ? load<int64_t>(view, 1) : load<int32_t>(view, 1)};
  if (found != std::vector<int64_t>{source.n, source.k}) {
    throw Error(view.where() + " holds " + shape_text(found) + ", expected " + shape_text({source.n, source.k}));
  }
}

// What the compressor writes before it has an order.
bool all_minus_one(const TensorView& view) {
  if (view.dtype() != "I32") return false;
  for (int64_t i = 0; i < view.tensor->elements(); ++i) {
    if (load<int32_t>(view, i) != -1) return false;
  }
  return true;
}

void find_compressed_tensors(const Finder& finder, LinearSource* source) {
  source->codes_format = OMNI_FORMAT_CT_PACKED;
  source->scales_by_channel = true;
  check_weight_shape(finder.at(*source, ".weight_shape"), *source);
  expect(*source->codes, {"I32"}, {source->n, words_of(source->k)});
  set_scales(finder.at(*source, ".weight_scale"), source);
  set_zeros(finder, ".weight_zero_point", OMNI_ZEROS_CT_PACKED, {words_of(source->n), source->groups()}, source);
  const TensorView* g_idx = finder.find(*source, ".weight_g_idx");
  if (g_idx == nullptr && finder.scheme.act_order) g_idx = &finder.at(*source, ".weight_g_idx");
  if (g_idx != nullptr && !all_minus_one(*g_idx)) source->g_idx = read_g_idx(*g_idx, *source);
}

void find_int4(const Checkpoint& checkpoint, const QuantConfig& quant, LinearSource* source) {
  const Finder finder{checkpoint, quant, quant.scheme(source->name)};
  source->group = finder.scheme.group == 0 ? source->k : std::min(finder.scheme.group, source->k);
  constexpr int64_t kGroups[] = {32, 64, 128, 256};
  if (source->group != source->k && std::find(std::begin(kGroups), std::end(kGroups), source->group) == std::end(kGroups)) {
    throw Error(source->codes->where() + " has group size " + std::to_string(source->group) +
                ", expected 32, 64, 128, 256 or the whole row");
  }
  switch (quant.method) {
    case QuantConfig::Method::kGptq:
      return find_gptq(finder, source);
    case QuantConfig::Method::kAwq:
      return find_awq(finder, source);
    case QuantConfig::Method::kCompressedTensors:
      return find_compressed_tensors(finder, source);
  }
}

}  // namespace

LinearSource find_linear(const Checkpoint& checkpoint, const std::optional<QuantConfig>& quant, const std::string& name, int64_t n,
                         int64_t k) {
  if (n < 1 || k < 1) throw Error(name + ": is " + shape_text({n, k}) + ", which is no matrix");
  LinearSource source;
  source.name = name;
  source.n = n;
  source.k = k;
  source.dense = checkpoint.find(name + ".weight");
  const TensorView *words = checkpoint.find(name + ".qweight"), *packed = checkpoint.find(name + ".weight_packed");
  const TensorView* int4 = words != nullptr ? words : packed;
  if (source.dense != nullptr && int4 != nullptr) {
    throw Error(int4->where() + " is there twice: the checkpoint also has \"" + name + ".weight\"");
  }
  if (source.dense != nullptr) {
    expect(*source.dense, {"BF16", "F16", "F32"}, {n, k});
    return source;
  }
  if (int4 == nullptr) {
    throw Error(checkpoint.directory().string() + ": has no tensor \"" + name + ".weight\", nor an int4 form of it");
  }
  if (!quant.has_value()) throw Error(int4->where() + " is int4, but the config has no quantization_config");
  source.codes = quant->method == QuantConfig::Method::kCompressedTensors ? packed : words;
  if (source.codes == nullptr || (words != nullptr && packed != nullptr)) {
    throw Error(int4->where() + " is not of the quant_method that " + quant->name + " names");
  }
  find_int4(checkpoint, *quant, &source);
  return source;
}

}  // namespace ref
