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

enum class Op : uint8_t { kGemv, kGemm, kPack, kDequant, kQuantize, kGather, kRmsnorm, kHeadgate, kGeglu, kRope, kAttention };
enum class Code : uint8_t { kJit, kCompiled };
enum class Numerics : uint8_t {
  kNone = 0,
  kGroup = OMNI_NUMERICS_GROUP,
  kTorch = OMNI_NUMERICS_TORCH,
  kExact = OMNI_NUMERICS_EXACT,
  kDense = OMNI_NUMERICS_DENSE,
  kFast = OMNI_NUMERICS_FAST
};

struct LinearKernel;     // kernels/gemv/linear_kernel.h
struct PackKernel;       // kernels/repack/pack_kernel.h
struct DequantKernel;    // kernels/dequant/dequant_kernel.h
struct QuantizeKernel;   // kernels/quantize
struct GatherKernel;     // kernels/gather
struct RmsnormKernel;    // kernels/rmsnorm
struct HeadgateKernel;   // kernels/headgate
struct GegluKernel;      // kernels/activation
struct RopeKernel;       // kernels/rope
struct AttentionKernel;  // kernels/attention

// The type of a row's implementation object, by operation.
template <Op op>
struct Implementation;
template <>
struct Implementation<Op::kGemv> {
  using type = LinearKernel;
};
template <>
struct Implementation<Op::kGemm> {
  using type = LinearKernel;
};
template <>
struct Implementation<Op::kPack> {
  using type = PackKernel;
};
template <>
struct Implementation<Op::kDequant> {
  using type = DequantKernel;
};
template <>
struct Implementation<Op::kQuantize> {
  using type = QuantizeKernel;
};
template <>
struct Implementation<Op::kGather> {
  using type = GatherKernel;
};
template <>
struct Implementation<Op::kRmsnorm> {
  using type = RmsnormKernel;
};
template <>
struct Implementation<Op::kHeadgate> {
  using type = HeadgateKernel;
};
template <>
struct Implementation<Op::kGeglu> {
  using type = GegluKernel;
};
template <>
struct Implementation<Op::kRope> {
  using type = RopeKernel;
};
template <>
struct Implementation<Op::kAttention> {
  using type = AttentionKernel;
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

  template <Op expected>
  const typename Implementation<expected>::type& as() const {
    return *static_cast<const typename Implementation<expected>::type*>(implementation);
  }
};

// Every row of registry.inc, in its order: the order of preference within one operation, best first.
std::span<const KernelRow> registry();
const KernelRow* find_kernel(std::string_view name);  // nullptr: no such row
std::string_view op_name(Op op);
std::string_view numerics_name(Numerics numerics);  // "" for none

}  // namespace okl
