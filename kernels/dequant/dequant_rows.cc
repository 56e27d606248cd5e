// SPDX-License-Identifier: Apache-2.0
// Objects of the registry rows: leaf files hold functions only.
#include "jit/x64/dequant_tg4.h"
#include "kernels/dequant/dequant_kernel.h"

namespace okl {

template <DequantCode (*code)(const DequantConfig&)>
constexpr DequantKernel compiled = {16, false, [](const DequantConfig& config, std::string_view) { return code(config).tile; },
                                    [](const DequantConfig& config) { return code(config).edge; }};

// Edges of generated kernels are compiled code of the same tier.
template <typename Kernel, DequantCode (*twin)(const DequantConfig&)>
constexpr DequantKernel generated = {jit::DequantTg4::kStep, true,
                                     [](const DequantConfig& config, std::string_view name) {
                                       const jit::GeneratedCode code =
                                           jit::find_or_generate(name, config, [&] { return Kernel(config).assemble(); });
                                       return reinterpret_cast<DequantFn>(const_cast<void*>(code.entry));
                                     },
                                     [](const DequantConfig& config) { return twin(config).edge; }};

extern const DequantKernel dequant_tg4_avx512, dequant_tg4_avx2;
const DequantKernel dequant_tg4_avx512 = generated<jit::DequantTg4Avx512, dequant_avx512_code>;
const DequantKernel dequant_tg4_avx2 = generated<jit::DequantTg4Avx2, dequant_avx2_code>;

extern const DequantKernel dequant_tg4_portable, dequant_tg4_twinavx2, dequant_tg4_twinavx512;
const DequantKernel dequant_tg4_portable = compiled<dequant_portable_code>;
const DequantKernel dequant_tg4_twinavx2 = compiled<dequant_avx2_code>;
const DequantKernel dequant_tg4_twinavx512 = compiled<dequant_avx512_code>;

}  // namespace okl
