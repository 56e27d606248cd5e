// SPDX-License-Identifier: Apache-2.0
// A row of the registry, and the words its name may be made of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cpu/isa.h"
#include "omni/layout.h"
#include "omni/linear.h"

namespace okl {

enum class Op : uint8_t {
  kGemv,
  kGemm,
  kPack,
  kDequant,
  kQuantize,
  kGather,
  kRmsnorm,
  kHeadgate,
  kGeglu,
  kRope,
  kAttention,
  kSwiglu,
  kHeadnorm,
  kConv1d,
  kDepthwise,
  kLayernorm,
  kActivation
};
enum class Code : uint8_t { kJit, kCompiled };
enum class Numerics : uint8_t {
  kNone = 0,
  kGroup = OMNI_NUMERICS_GROUP,
  kTorch = OMNI_NUMERICS_TORCH,
  kExact = OMNI_NUMERICS_EXACT,
  kDense = OMNI_NUMERICS_DENSE,
  kFast = OMNI_NUMERICS_FAST
};

struct LinearKernel;      // kernels/gemv/linear_kernel.h
struct ExactKernel;       // kernels/gemm/exact_kernel.h
struct DenseKernel;       // kernels/gemm/dense_kernel.h
struct FastKernel;        // kernels/fast/fast_kernel.h
struct PackKernel;        // kernels/repack/pack_kernel.h
struct DequantKernel;     // kernels/dequant/dequant_kernel.h
struct QuantizeKernel;    // kernels/quantize
struct GatherKernel;      // kernels/gather/gather_kernel.h
struct RmsnormKernel;     // kernels/rmsnorm
struct LayernormKernel;   // kernels/rmsnorm
struct ActivationKernel;  // kernels/activation
struct HeadnormKernel;    // kernels/rmsnorm
struct HeadgateKernel;    // kernels/headgate
struct GatedKernel;       // kernels/activation
struct RopeKernel;        // kernels/rope
struct AttentionKernel;   // kernels/attention
struct DepthwiseKernel;   // kernels/conv

// The type of a linear row's implementation object, by class and weights.
template <Numerics numerics, omni_format weights>
struct LinearImplementation {
  using type = LinearKernel;
};
template <omni_format weights>
struct LinearImplementation<Numerics::kExact, weights> {
  using type = ExactKernel;
};
template <omni_format weights>
struct LinearImplementation<Numerics::kDense, weights> {
  using type = DenseKernel;
};
template <>
struct LinearImplementation<Numerics::kGroup, OMNI_FORMAT_W8S> {
  using type = DenseKernel;
};
template <omni_format weights>
struct LinearImplementation<Numerics::kFast, weights> {
  using type = FastKernel;
};

// The type of a row's implementation object.
template <Op op, Numerics numerics = Numerics::kNone, omni_format weights = OMNI_FORMAT_NONE>
struct Implementation;
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kGemv, numerics, weights> : LinearImplementation<numerics, weights> {};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kGemm, numerics, weights> : LinearImplementation<numerics, weights> {};
// A convolution is a dense product over (tap, input channel): its rows are made of the same kernels.
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kConv1d, numerics, weights> : LinearImplementation<numerics, weights> {};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kPack, numerics, weights> {
  using type = PackKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kDequant, numerics, weights> {
  using type = DequantKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kQuantize, numerics, weights> {
  using type = QuantizeKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kGather, numerics, weights> {
  using type = GatherKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kRmsnorm, numerics, weights> {
  using type = RmsnormKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kHeadgate, numerics, weights> {
  using type = HeadgateKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kGeglu, numerics, weights> {
  using type = GatedKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kRope, numerics, weights> {
  using type = RopeKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kAttention, numerics, weights> {
  using type = AttentionKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kSwiglu, numerics, weights> {
  using type = GatedKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kHeadnorm, numerics, weights> {
  using type = HeadnormKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kDepthwise, numerics, weights> {
  using type = DepthwiseKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kLayernorm, numerics, weights> {
  using type = LayernormKernel;
};
template <Numerics numerics, omni_format weights>
struct Implementation<Op::kActivation, numerics, weights> {
  using type = ActivationKernel;
};

struct KernelRow {
  Op op;
  std::string_view name;
  Numerics numerics;
  omni_dtype activation;  // OMNI_DTYPE_NONE where the operation has none
  omni_format weights;
  IsaMask required;
  std::string_view isa;  // the ISA word that ends the name
  uint8_t mr, nr;        // 0 where the operation has no such tile
  Code code;
  const void* implementation;
  std::string_view summary;

  template <Op expected, Numerics of_class = Numerics::kNone, omni_format of_weights = OMNI_FORMAT_NONE>
  const typename Implementation<expected, of_class, of_weights>::type& as() const {
    return *static_cast<const typename Implementation<expected, of_class, of_weights>::type*>(implementation);
  }
};

// Every row of registry.inc, in its order: the order of preference within one operation, best first.
std::span<const KernelRow> registry();
const KernelRow* find_kernel(std::string_view name);  // nullptr: no such row
std::string_view op_name(Op op);
std::string_view numerics_name(Numerics numerics);  // "" for none

}  // namespace okl
