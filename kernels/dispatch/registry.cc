// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch/kernel.h"

namespace okl {

#define OMNI_KERNEL(op, name, numerics, activation, weights, required, isa, mr, nr, code, implementation, summary) \
  extern const Implementation<Op::op, Numerics::numerics, weights>::type implementation;
#include "kernels/dispatch/registry.inc"
#undef OMNI_KERNEL

namespace {

constexpr KernelRow rows[] = {
#define OMNI_KERNEL(op, name, numerics, activation, weights, required, isa, mr, nr, code, implementation, summary) \
  {Op::op, name, Numerics::numerics, activation, weights, required, isa, mr, nr, Code::code, &implementation, summary},
#include "kernels/dispatch/registry.inc"
#undef OMNI_KERNEL
};

}  // namespace

std::span<const KernelRow> registry() { return rows; }

const KernelRow* find_kernel(std::string_view name) {
  for (const KernelRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kGemv:
      return "gemv";
    case Op::kGemm:
      return "gemm";
    case Op::kPack:
      return "pack";
    case Op::kDequant:
      return "dequant";
    case Op::kQuantize:
      return "quantize";
    case Op::kGather:
      return "gather";
    case Op::kRmsnorm:
      return "rmsnorm";
    case Op::kHeadgate:
      return "headgate";
    case Op::kGeglu:
      return "geglu";
    case Op::kRope:
      return "rope";
    case Op::kAttention:
      return "attention";
    case Op::kSwiglu:
      return "swiglu";
    case Op::kHeadnorm:
      return "headnorm";
    case Op::kConv1d:
      return "conv1d";
    case Op::kDepthwise:
      return "depthwise";
    case Op::kLayernorm:
      return "layernorm";
    case Op::kActivation:
      return "activation";
  }
  return "";
}

std::string_view numerics_name(Numerics numerics) {
  switch (numerics) {
    case Numerics::kNone:
      return "";
    case Numerics::kGroup:
      return "group";
    case Numerics::kTorch:
      return "torch";
    case Numerics::kExact:
      return "exact";
    case Numerics::kDense:
      return "dense";
    case Numerics::kFast:
      return "fast";
  }
  return "";
}

}  // namespace okl
