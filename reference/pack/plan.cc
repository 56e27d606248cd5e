// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/plan.h"

#include <fnmatch.h>

#include <algorithm>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/shape_text.h"
#include "reference/core/weight_path.h"
#include "reference/pack/source_scan.h"

namespace ref {
namespace {

bool is_int4(const LinearSource& source) { return source.dense == nullptr; }

Route route_of(const LinearSource& source, const MatrixWish& wish) {
  switch (wish.type) {
    case WeightType::kKeep:
    case WeightType::kW4A8:
    case WeightType::kW4A16:
      if (is_int4(source)) return Route::kImport;
      return wish.type == WeightType::kKeep ? Route::kDense : Route::kInt4;
    case WeightType::kW8A8:
      return Route::kInt8;
    case WeightType::kBf16:
      break;
  }
  return Route::kDense;
}

omni_layout make_layout(const std::string& name, omni_format format, int64_t n, int64_t k, int64_t group, omni_dtype scales) {
  omni_layout layout = {};
  layout.size = sizeof layout;
  check_omni(omni_layout_init(&layout, format, n, k, static_cast<uint32_t>(group), scales), "matrix \"" + name + "\"");
  return layout;
}

omni_format int4_format(const MatrixWish& wish) {
  if (wish.type == WeightType::kKeep) return wish.kept_int4;
  return wish.type == WeightType::kW4A8 ? OMNI_FORMAT_W4S : OMNI_FORMAT_TG4;
}

bool is_bf16(float value) { return widen_bf16(round_bf16(value)) == value; }

// What the scale arrays of int4 sources hold.
struct ScaleFacts {
  bool symmetric = true, scales_exact = true, zeros_exact = true;
};
ScaleFacts scan_scales(const std::vector<LinearSource>& sources) {
  ScaleFacts facts;
  std::vector<float> scales;
  std::vector<uint8_t> zeros;
  for (const LinearSource& source : sources) {
    read_scales(source, &scales, &zeros);
    for (size_t i = 0; i < scales.size(); ++i) {
      facts.symmetric = facts.symmetric && zeros[i] == 8;
      facts.scales_exact = facts.scales_exact && is_bf16(scales[i]);
      facts.zeros_exact = facts.zeros_exact && is_bf16(static_cast<float>(8 - zeros[i]) * scales[i]);
    }
  }
  return facts;
}

omni_layout import_layout(const MatrixPlan& plan, int64_t n, int64_t k, const MatrixWish& wish) {
  const ScaleFacts facts = scan_scales(plan.sources);
  const omni_format format = int4_format(wish);
  const bool exact = facts.scales_exact && (format == OMNI_FORMAT_W4S || facts.zeros_exact) && !wish.fp32_scales;
  omni_layout layout = make_layout(plan.name, format, n, k, plan.sources.front().group, exact ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32);
  if (format == OMNI_FORMAT_W4S && !facts.symmetric) layout.flags |= OMNI_LAYOUT_ZEROS;
  return layout;
}

omni_layout int4_layout(const std::string& name, int64_t n, int64_t k, int64_t group, const MatrixWish& wish) {
  const omni_format format = int4_format(wish);
  // Scales are chosen among the bf16 values, and so are zeros of tg4 that are searched for; (8 - zero point) * scale seldom is one.
  const bool bf16_zeros = wish.symmetric || wish.bf16_zeros || wish.quantiser != Quantiser::kNearest;
  const bool bf16 = !wish.fp32_scales && (format == OMNI_FORMAT_W4S || bf16_zeros);
  omni_layout layout = make_layout(name, format, n, k, group, bf16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32);
  if (format == OMNI_FORMAT_W4S && !wish.symmetric) layout.flags |= OMNI_LAYOUT_ZEROS;
  return layout;
}

// A scale of its own costs nothing per row, but a group's is read for every few weights.
omni_layout int8_layout(const std::string& name, int64_t n, int64_t k, int64_t group, const MatrixWish& wish) {
  const bool bf16 = !wish.fp32_scales && group < k;
  return make_layout(name, OMNI_FORMAT_W8S, n, k, group, bf16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32);
}

omni_layout dense_layout(const MatrixPlan& plan, int64_t n, int64_t k, const MatrixWish& wish) {
  bool w16 = true;
  if (wish.type == WeightType::kKeep && wish.fp32) {
    w16 = false;
  } else if (wish.type == WeightType::kKeep) {
    // Kept means kept: what bf16 cannot hold, or bf16 rows could not use as it is, is stored in fp32.
    for (const LinearSource& source : plan.sources) {
      const ValueScan scan = scan_values(source);
      w16 = w16 && scan.bf16_exact && !scan.small;
    }
  }
  omni_layout layout = make_layout(plan.name, w16 ? OMNI_FORMAT_W16 : OMNI_FORMAT_W32, n, k, k, OMNI_DTYPE_NONE);
  if (w16) layout.flags |= OMNI_LAYOUT_SCRUBBED;
  return layout;
}

}  // namespace

void check_omni(omni_status status, const std::string& what) {
  if (status != OMNI_OK) throw Error(what + ": " + omni_last_error());
}

std::string layout_text(const omni_layout& layout) {
  char text[96];
  check_omni(omni_layout_to_text(&layout, text, sizeof text), "layout");
  return text;
}

MatrixWish layer_wish(const PackOptions& options) {
  return {.type = options.weights,
          .group = options.group,
          .symmetric = options.symmetric,
          .quantiser = options.quantiser,
          .bf16_zeros = options.bf16_zeros,
          .fp32_scales = options.fp32_scales,
          .kept_int4 = options.weights == WeightType::kW4A8 ? OMNI_FORMAT_W4S : OMNI_FORMAT_TG4};
}

MatrixWish head_wish(const PackOptions& options) {
  MatrixWish wish = layer_wish(options);
  const bool integer_rows = options.weights == WeightType::kW4A8 || options.weights == WeightType::kW8A8;
  switch (options.head) {
    case HeadType::kKeep:
      wish.type = WeightType::kKeep;
      break;
    case HeadType::kBf16:
      wish.type = WeightType::kBf16;
      break;
    case HeadType::kW8:
      wish.type = WeightType::kW8A8;
      wish.group = 0;
      break;
    case HeadType::kW4:
      wish.type = integer_rows ? WeightType::kW4A8 : WeightType::kW4A16;
      wish.group = options.head_group;
      wish.symmetric = options.head_symmetric;
      break;
  }
  return wish;
}

bool is_kept(const PackOptions& options, const std::string& module) {
  return std::any_of(options.keep.begin(), options.keep.end(),
                     [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), module.c_str(), 0) == 0; });
}

std::map<std::string, std::string> option_facts(const std::string& model_type, const PackOptions& options) {
  const char* quantisers[] = {"nearest", "search", "gptq"};
  return {{"model_type", model_type},
          {"weights", std::string(weight_type_name(options.weights))},
          {"head", std::string(head_type_name(options.head))},
          {"group", std::to_string(options.group)},
          {"symmetric", options.symmetric ? "true" : "false"},
          {"quantiser", quantisers[static_cast<size_t>(options.quantiser)]}};
}

std::string method_name(const QuantConfig& quant) {
  switch (quant.method) {
    case QuantConfig::Method::kGptq:
      return quant.gptq_v2 ? "GPTQ v2" : "GPTQ";
    case QuantConfig::Method::kAwq:
      return "AWQ";
    case QuantConfig::Method::kCompressedTensors:
      break;
  }
  return "compressed-tensors";
}

MatrixPlan plan_matrix(const std::string& name, std::vector<LinearSource> sources, const MatrixWish& wish) {
  MatrixPlan plan{.name = name, .sources = std::move(sources), .symmetric = wish.symmetric, .quantiser = wish.quantiser};
  const int64_t k = plan.sources.front().k;
  int64_t n = 0;
  for (const LinearSource& source : plan.sources) n += source.n;
  const int64_t group = wish.group == 0 ? k : wish.group;
  plan.route = route_of(plan.sources.front(), wish);
  switch (plan.route) {
    case Route::kDense:
    case Route::kRandom:
      plan.layout = dense_layout(plan, n, k, wish);
      break;
    case Route::kInt8:
      plan.layout = int8_layout(name, n, k, group, wish);
      break;
    case Route::kInt4:
      plan.layout = int4_layout(name, n, k, group, wish);
      break;
    case Route::kImport:
      plan.layout = import_layout(plan, n, k, wish);
      break;
  }
  return plan;
}

bool can_stack(const LinearSource& a, const MatrixWish& wish_a, const LinearSource& b, const MatrixWish& wish_b) {
  if (a.k != b.k || wish_a.type != wish_b.type) return false;
  const Route route = route_of(a, wish_a);
  if (route != route_of(b, wish_b)) return false;
  return route != Route::kImport || (a.group == b.group && a.g_idx == b.g_idx);
}

MatrixPlan plan_random(const std::string& name, int64_t n, int64_t k, const MatrixWish& wish, double deviation) {
  MatrixPlan plan{.name = name, .route = Route::kRandom, .symmetric = wish.symmetric, .deviation = deviation};
  const int64_t group = wish.group == 0 ? k : wish.group;
  if (wish.type == WeightType::kW8A8) {
    plan.layout = int8_layout(name, n, k, group, wish);
  } else if (wish.type == WeightType::kW4A8 || wish.type == WeightType::kW4A16) {
    plan.layout = int4_layout(name, n, k, group, wish);
  } else if (wish.fp32) {
    plan.layout = make_layout(name, OMNI_FORMAT_W32, n, k, k, OMNI_DTYPE_NONE);
  } else {
    plan.layout = make_layout(name, OMNI_FORMAT_W16, n, k, k, OMNI_DTYPE_NONE);
    plan.layout.flags |= OMNI_LAYOUT_SCRUBBED;
  }
  return plan;
}

omni_dtype plain_type(const TensorView& tensor) {
  if (tensor.dtype() == "BF16") return OMNI_DTYPE_BF16;
  if (tensor.dtype() == "F16") return OMNI_DTYPE_F16;
  if (tensor.dtype() == "F32") return OMNI_DTYPE_F32;
  throw Error(tensor.where() + " has the type " + tensor.dtype() + ", expected BF16, F16 or F32");
}

PlainPlan plan_plain(const std::string& name, std::vector<const TensorView*> tensors, std::vector<int64_t> shape) {
  PlainPlan plan{.name = name, .shape = std::move(shape), .tensors = std::move(tensors)};
  plan.type = plain_type(*plan.tensors.front());
  for (const TensorView* tensor : plan.tensors) {
    if (plain_type(*tensor) != plan.type) plan.type = OMNI_DTYPE_F32;
  }
  return plan;
}

}  // namespace ref
