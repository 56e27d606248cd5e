// SPDX-License-Identifier: Apache-2.0
// Objects of the rows whose code is generated or stands in leaf files: those hold functions only.
#include "jit/x64/pack_tg4.h"
#include "kernels/repack/pack_kernel.h"

namespace okl {

uint32_t pack_block_avx2(const PackTile* tile);
uint32_t pack_block_avx512(const PackTile* tile);

extern const PackKernel pack_tg4_avx512, pack_tg4_avx2, pack_tg4_twinavx2, pack_tg4_twinavx512;

template <typename Kernel>
constexpr PackKernel generated = {jit::PackTg4::kStep, [](std::string_view name) -> PackFn {
                                    const jit::GeneratedCode code = jit::find_or_generate(name, std::span<const std::byte>(),
                                                                                          [] { return Kernel().assemble(); });
                                    return reinterpret_cast<PackFn>(const_cast<void*>(code.entry));
                                  }};

const PackKernel pack_tg4_avx512 = generated<jit::PackTg4Avx512>;
const PackKernel pack_tg4_avx2 = generated<jit::PackTg4Avx2>;
const PackKernel pack_tg4_twinavx2 = {16, [](std::string_view) -> PackFn { return pack_block_avx2; }};
const PackKernel pack_tg4_twinavx512 = {16, [](std::string_view) -> PackFn { return pack_block_avx512; }};

}  // namespace okl
