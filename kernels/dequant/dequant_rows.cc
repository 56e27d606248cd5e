// SPDX-License-Identifier: Apache-2.0
// Objects of the registry rows whose code is compiled: leaf files hold functions only.
#include "kernels/dequant/dequant_kernel.h"

namespace okl {

template <DequantCode (*code)(const DequantConfig&)>
constexpr DequantKernel compiled = {16, [](const DequantConfig& config, std::string_view) { return code(config).tile; },
                                    [](const DequantConfig& config) { return code(config).edge; }};

extern const DequantKernel dequant_tg4_portable, dequant_tg4_twinavx2, dequant_tg4_twinavx512;
const DequantKernel dequant_tg4_portable = compiled<dequant_portable_code>;
const DequantKernel dequant_tg4_twinavx2 = compiled<dequant_avx2_code>;
const DequantKernel dequant_tg4_twinavx512 = compiled<dequant_avx512_code>;

}  // namespace okl
