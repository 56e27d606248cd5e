// SPDX-License-Identifier: Apache-2.0
// The generated dense kernels as implementations of registry rows.
#include <string>

#include "jit/x64/linear_dense_avx512.h"
#include "jit/x64/unpack_dense.h"
#include "kernels/gemm/dense_kernel.h"

namespace okl {
namespace {

template <typename Function, typename Assemble>
DenseCode<Function> generate(std::string_view name, const DenseConfig& config, const Assemble& assemble) {
  const jit::GeneratedCode code = jit::find_or_generate(name, config, assemble);
  return {reinterpret_cast<Function>(const_cast<void*>(code.entry)), code.bytes};
}

template <typename Tile, DenseElement element>
DenseCode<DenseTileFn> make_tile(const DenseConfig& config, std::string_view name) {
  return generate<DenseTileFn>(name, config, [&] { return Tile(config, element).assemble(); });
}

template <jit::VectorWidth width, DenseElement element>
DenseCode<DenseUnpackFn> make_unpack(const DenseConfig& config, std::string_view name) {
  DenseConfig key{};  // what unpacking depends on
  key.weights = config.weights;
  key.order = config.order;
  key.block_width = config.block_width;
  key.panel_inputs = config.panel_inputs;
  return generate<DenseUnpackFn>(std::string(name) + ".unpack", key,
                                 [&] { return jit::UnpackDense(key, width, element).assemble(); });
}

constexpr auto kFloat = DenseElement::kFloat;
constexpr auto kZmm = jit::VectorWidth::kZmm;
using Avx512 = jit::LinearDenseAvx512;

}  // namespace

extern const DenseKernel dense_avx512f, dense_w32_avx512f;
const DenseKernel dense_avx512f = {Avx512::kMaxRows,          kFloat, PanelUse::kSeveralTiles, false, &make_tile<Avx512, kFloat>,
                                   &make_unpack<kZmm, kFloat>};
const DenseKernel dense_w32_avx512f = {Avx512::kMaxRows, kFloat, PanelUse::kNever, false, &make_tile<Avx512, kFloat>, nullptr};

}  // namespace okl
