// SPDX-License-Identifier: Apache-2.0
// The generated kernels of class fast as implementations of registry rows.
#include "jit/cache/code_cache.h"
#include "jit/x64/amx_fast.h"

namespace okl {
namespace {

FastCode make_amx(const FastConfig& config, std::string_view name) {
  const jit::GeneratedCode code = jit::find_or_generate(name, config, [&] { return jit::AmxFast(config).assemble(); });
  return {reinterpret_cast<FastTileFn>(const_cast<void*>(code.entry)), code.bytes};
}

}  // namespace

extern const FastKernel gemm_fast_amx;
const FastKernel gemm_fast_amx = {jit::AmxFast::kMaxRows, &jit::AmxFast::scratch, &make_amx};

}  // namespace okl
