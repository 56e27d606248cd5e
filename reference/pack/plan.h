// SPDX-License-Identifier: Apache-2.0
// What a packed model will hold, decided before a byte of it is written: which tensor becomes what, and in which layout.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/io/linear_source.h"
#include "reference/pack/options.h"

namespace ref {

// How the packed codes of a matrix come about.
enum class Route : uint8_t {
  kDense,   // values into w16 or w32
  kInt8,    // fp32 rows quantised into w8s
  kInt4,    // fp32 rows quantised into tg4 or w4s
  kImport,  // codes of an int4 source as they are, into tg4 or w4s
  kRandom   // no source: bytes of a synthetic model
};

struct MatrixPlan {
  std::string name;
  Route route = Route::kDense;
  omni_layout layout = {};
  std::vector<LinearSource> sources = {};  // stacked by rows, all of the layout's k
  bool symmetric = true;                   // kInt4
  Quantiser quantiser = Quantiser::kNearest;
  double deviation = 0;  // kRandom: of the weights
  bool seldom = false;   // not of every token: never copied into memory as a whole

  // Inputs are stored in another order, which the file tells.
  bool permuted() const { return route == Route::kImport && !sources.front().g_idx.empty(); }
};

struct PlainPlan {
  std::string name;
  omni_dtype type = OMNI_DTYPE_BF16;
  std::vector<int64_t> shape = {};
  std::vector<const TensorView*> tensors = {};  // one after the other
  std::vector<LinearSource> linear = {};        // instead of tensors: one int4 module, in fp32
  // Instead of tensors: elements from `first` on, of an fp32 tensor.
  std::function<void(uint64_t first, std::span<float> out)> derive = {};
  // Only rows that are looked up are read, so that it is never copied into memory as a whole.
  bool lookup = false;
  bool seldom = false;             // likewise, as MatrixPlan has it
  double mean = 0, deviation = 0;  // values of a synthetic model, where there is no source
};

inline constexpr const char* kWeightsFile = "weights.safetensors";  // of a packed model

struct PackPlan {
  std::string file = kWeightsFile;  // another name: a checkpoint of plain tensors
  std::vector<MatrixPlan> matrices = {};
  std::vector<PlainPlan> plains = {};
  std::map<std::string, std::string> facts = {};  // for the metadata: model type, options
  std::vector<std::string> notes = {};
};

// What a matrix is asked to be.
struct MatrixWish {
  WeightType type = WeightType::kKeep;
  int64_t group = 0;  // 0: the whole row
  bool symmetric = true;
  Quantiser quantiser = Quantiser::kNearest;
  bool bf16_zeros = false;
  bool fp32_scales = false;
  omni_format kept_int4 = OMNI_FORMAT_TG4;  // kKeep: the form of int4 sources
  bool fp32 = false;                        // kKeep: fp32 also where bf16 would hold every value
};
MatrixWish layer_wish(const PackOptions& options);
MatrixWish head_wish(const PackOptions& options);
// Whether a module is named by one of the patterns of PackOptions::keep.
bool is_kept(const PackOptions& options, const std::string& module);

// For the metadata of a packed file.
std::map<std::string, std::string> option_facts(const std::string& model_type, const PackOptions& options);
std::string method_name(const QuantConfig& quant);

// Decides. Reads values only to find out whether bf16 holds them. Throws Error naming the tensor.
MatrixPlan plan_matrix(const std::string& name, std::vector<LinearSource> sources, const MatrixWish& wish);
// Whether the rows of two modules may stand in one matrix under such wishes.
bool can_stack(const LinearSource& a, const MatrixWish& wish_a, const LinearSource& b, const MatrixWish& wish_b);
// The layout of an n x k matrix of no source.
MatrixPlan plan_random(const std::string& name, int64_t n, int64_t k, const MatrixWish& wish, double deviation);

// A tensor as it is, of the given shape; several are stacked, and widened where their types differ. `dtype` of a checkpoint to
// ours.
PlainPlan plan_plain(const std::string& name, std::vector<const TensorView*> tensors, std::vector<int64_t> shape);
omni_dtype plain_type(const TensorView& tensor);

// Throws Error with the library's last error line.
void check_omni(omni_status status, const std::string& what);
std::string layout_text(const omni_layout& layout);

}  // namespace ref
