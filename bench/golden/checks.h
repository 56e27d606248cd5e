// SPDX-License-Identifier: Apache-2.0
// What verification does with each kind of golden data. All record into `record`; Malformed and SafetensorsError are thrown.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/golden/golden_file.h"
#include "bench/golden/operations.h"
#include "bench/golden/record.h"

namespace omnibench {

/// "w4a16": packings of PyTorch's three builds, dequantised weights, outputs of class torch.
void check_w4a16(const Session& session, GoldenFile& file, FileRecord* record);
/// "w4a16_group_output": outputs of class group for the w4a16 file that it names, which lies beside it.
void check_group_output(const Session& session, const GoldenFile& file, FileRecord* record);
/// "w4a16_group_edge": outputs of class group for its own operands: subnormals, infinities, NaN, signed zeros, a short last group.
void check_group_edge(const Session& session, GoldenFile& file, FileRecord* record);
/// "w4a8": vLLM's packing from and to codes, outputs of class exact from bf16 rows and from given codes, with bias and without.
void check_w4a8(const Session& session, GoldenFile& file, FileRecord* record);
/// "w8a8": the same outputs for int8 weights.
void check_w8a8(const Session& session, GoldenFile& file, FileRecord* record);
/// "gptq_*", "awq_*", "ct_packquant_*": import of words, zero points and act-order, dequantised weights, and linear layers.
void check_checkpoint(const Session& session, GoldenFile& file, FileRecord* record);
/// Digest files: operands from the generator, SHA-256 of what is made of them.
void check_digests(const Session& session, const std::string& path, const nlohmann::json& digests, FileRecord* record);

/// omni_repack of whole matrices; `k_permutation`, [K], is written when `g_idx` is given.
Buffer repacked(const GoldenFile& file, omni_format from, std::span<const std::byte> source, omni_format to,
                const std::string& kernel, const omni::Pool& pool, const std::vector<int32_t>* g_idx = nullptr,
                std::vector<int32_t>* k_permutation = nullptr);
/// bf16 values widened to fp32.
std::vector<float> widened(const std::vector<uint16_t>& bf16);
/// [K][N] of [N][K].
std::vector<uint16_t> transposed(const std::vector<uint16_t>& values, int64_t n, int64_t k);
omni_layout tg4_layout(int64_t n, int64_t k, uint32_t group, omni_dtype scale_type);
/// Dequantised weights by every kernel, in both orders, on all pools. `expected`: bf16 [N][K].
void check_dequantised(const Session& session, const Weights& weights, const std::vector<uint16_t>& expected,
                       const std::string& what, FileRecord* record);

}  // namespace omnibench
