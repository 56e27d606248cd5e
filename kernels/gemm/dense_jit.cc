// SPDX-License-Identifier: Apache-2.0
// The generated dense kernels as implementations of registry rows.
#include "jit/x64/linear_dense_avx2.h"
#include "jit/x64/linear_dense_avx512.h"
#include "kernels/gemm/dense_kernel.h"

namespace okl {
namespace {

template <typename Tile, DenseElement element>
DenseCode make_tile(const DenseConfig& config, std::string_view name) {
  const jit::GeneratedCode code = jit::find_or_generate(name, config, [&] { return Tile(config, element).assemble(); });
  return {reinterpret_cast<DenseTileFn>(const_cast<void*>(code.entry)), code.bytes};
}

template <typename Tile, DenseElement element = DenseElement::kFloat>
constexpr DenseKernel generated(bool has_panel) {
  return {Tile::kMaxRows, element, has_panel, Tile::kSeveralPasses, &make_tile<Tile, element>};
}

}  // namespace

extern const DenseKernel dense_avx512f, dense_w32_avx512f;
const DenseKernel dense_avx512f = generated<jit::LinearDenseAvx512>(true);
const DenseKernel dense_w32_avx512f = generated<jit::LinearDenseAvx512>(false);
extern const DenseKernel dense_avx2, dense_w32_avx2;
const DenseKernel dense_avx2 = generated<jit::LinearDenseAvx2>(true);
const DenseKernel dense_w32_avx2 = generated<jit::LinearDenseAvx2>(false);
extern const DenseKernel dense_avx512bf16, dense_w8s_avx512bf16;
const DenseKernel dense_avx512bf16 = generated<jit::LinearDenseAvx512, DenseElement::kBf16Pair>(false);
const DenseKernel dense_w8s_avx512bf16 = generated<jit::LinearDenseAvx512, DenseElement::kBf16Pair>(true);

}  // namespace okl
