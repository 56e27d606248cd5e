// SPDX-License-Identifier: Apache-2.0
// The AMX kernels of class exact as implementations of registry rows.
#include "jit/cache/code_cache.h"
#include "jit/x64/amx_exact.h"

namespace okl {
namespace {

ExactCode make_amx(const ExactConfig& config, std::string_view name) {
  const jit::GeneratedCode code = jit::find_or_generate(name, config, [&] { return jit::AmxExact(config).assemble(); });
  return {reinterpret_cast<ExactTileFn>(const_cast<void*>(code.entry)), code.bytes};
}

}  // namespace

// One path for any number of rows: the panel of w4s is part of it.
extern const ExactKernel exact_amx;
const ExactKernel exact_amx = {jit::AmxExact::kMaxRows, 0, 0, &jit::AmxExact::scratch, &make_amx};

}  // namespace okl
