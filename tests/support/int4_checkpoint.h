// SPDX-License-Identifier: Apache-2.0
// The same int4 weights as tensors of each checkpoint format. Padding nibbles are 15, so that a reader that looks at them is
// caught.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace omni_files {

struct Int4Module {
  int64_t n = 0, k = 0, group = 0;
  std::vector<uint8_t> codes;  // [n][k]
  std::vector<uint8_t> zeros;  // [n][groups]
  std::vector<float> scales;   // [n][groups], fp16-exact
  std::vector<int32_t> g_idx;  // empty: k / group

  int64_t groups() const { return (k + group - 1) / group; }
  int64_t group_of(int64_t input) const { return g_idx.empty() ? input / group : g_idx[static_cast<size_t>(input)]; }
  int code(int64_t row, int64_t input) const { return codes[static_cast<size_t>(row * k + input)]; }
  int zero(int64_t row, int64_t g) const { return zeros[static_cast<size_t>(row * groups() + g)]; }
  float scale(int64_t row, int64_t g) const { return scales[static_cast<size_t>(row * groups() + g)]; }
  float weight(int64_t row, int64_t input) const {
    const int64_t g = group_of(input);
    return static_cast<float>(code(row, input) - zero(row, g)) * scale(row, g);
  }

  // Every code, zero point and scale the same.
  static Int4Module constant(int64_t n, int64_t k, int64_t group, int code, int zero, float scale) {
    Int4Module made{n, k, group, {}, {}, {}, {}};
    made.codes.assign(static_cast<size_t>(n * k), static_cast<uint8_t>(code));
    made.zeros.assign(static_cast<size_t>(n * made.groups()), static_cast<uint8_t>(zero));
    made.scales.assign(made.zeros.size(), scale);
    return made;
  }
  // Codes, scales of 1/64 to 5/64, and zero points 1..15 (8 when symmetric), from a counter.
  static Int4Module varied(int64_t n, int64_t k, int64_t group, bool symmetric) {
    Int4Module made = constant(n, k, group, 0, 8, 0);
    uint32_t state = 12345;
    const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
    for (uint8_t& code : made.codes) code = static_cast<uint8_t>(next() % 16);
    for (uint8_t& zero : made.zeros) zero = static_cast<uint8_t>(symmetric ? 8 : 1 + next() % 15);
    for (float& scale : made.scales) scale = static_cast<float>(64 + next() % 256) / 4096.0F;
    return made;
  }
};

// Packs value(i) for i in [0, count) into words of eight; nibble j of a word is element order[j].
template <typename Value>
std::vector<uint32_t> pack_nibbles(int64_t count, const int (&order)[8], Value value) {
  std::vector<uint32_t> words(static_cast<size_t>((count + 7) / 8));
  for (int64_t i = 0; i < static_cast<int64_t>(words.size()) * 8; ++i) {
    const int64_t element = i / 8 * 8 + order[i % 8];
    const uint32_t nibble = element < count ? static_cast<uint32_t>(value(element)) & 15u : 15u;
    words[static_cast<size_t>(i / 8)] |= nibble << (i % 8 * 4);
  }
  return words;
}
constexpr int kInOrder[8] = {0, 1, 2, 3, 4, 5, 6, 7}, kAwqOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

inline std::vector<uint32_t> transposed(const std::vector<std::vector<uint32_t>>& columns) {
  std::vector<uint32_t> words;
  for (size_t r = 0; r < columns.at(0).size(); ++r) {
    for (const std::vector<uint32_t>& column : columns) words.push_back(column[r]);
  }
  return words;
}
inline void append(std::vector<uint32_t>* words, const std::vector<uint32_t>& more) {
  words->insert(words->end(), more.begin(), more.end());
}

// Scales as "F16", "BF16" or "F32", [n][groups] or transposed. Normal numbers only.
inline void add_scales(SafetensorsWriter* writer, const std::string& name, const Int4Module& module, bool by_channel,
                       const std::string& dtype) {
  std::vector<float> values;
  const int64_t rows = by_channel ? module.n : module.groups(), columns = by_channel ? module.groups() : module.n;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t r = i / columns, c = i % columns;
    values.push_back(by_channel ? module.scale(r, c) : module.scale(c, r));
  }
  if (dtype == "F32") {
    writer->add(name, dtype, {rows, columns}, values);
    return;
  }
  std::vector<uint16_t> halves;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = (bits >> 23 & 0xFFu) - 112;
    halves.push_back(
        static_cast<uint16_t>(dtype == "BF16" ? bits >> 16 : bits >> 31 << 15 | exponent << 10 | (bits >> 13 & 0x3FFu)));
  }
  writer->add(name, dtype, {rows, columns}, halves);
}

inline void add_g_idx(SafetensorsWriter* writer, const std::string& name, const Int4Module& module) {
  std::vector<int32_t> g_idx;
  for (int64_t i = 0; i < module.k; ++i) g_idx.push_back(static_cast<int32_t>(module.group_of(i)));
  writer->add(name, "I32", {module.k}, g_idx);
}

inline void add_gptq(SafetensorsWriter* writer, const std::string& name, const Int4Module& module, bool v2 = false,
                     const std::string& scale_type = "F16") {
  std::vector<std::vector<uint32_t>> columns;
  for (int64_t c = 0; c < module.n; ++c) {
    columns.push_back(pack_nibbles(module.k, kInOrder, [&](int64_t i) { return module.code(c, i); }));
  }
  writer->add(name + ".qweight", "I32", {(module.k + 7) / 8, module.n}, transposed(columns));
  std::vector<uint32_t> zeros;
  for (int64_t g = 0; g < module.groups(); ++g) {
    append(&zeros, pack_nibbles(module.n, kInOrder, [&](int64_t c) { return module.zero(c, g) - (v2 ? 0 : 1); }));
  }
  writer->add(name + ".qzeros", "I32", {module.groups(), (module.n + 7) / 8}, zeros);
  add_scales(writer, name + ".scales", module, false, scale_type);
  add_g_idx(writer, name + ".g_idx", module);
}

inline void add_awq(SafetensorsWriter* writer, const std::string& name, const Int4Module& module,
                    const std::string& scale_type = "F16") {
  std::vector<uint32_t> words, zeros;
  for (int64_t i = 0; i < module.k; ++i) {
    append(&words, pack_nibbles(module.n, kAwqOrder, [&](int64_t c) { return module.code(c, i); }));
  }
  for (int64_t g = 0; g < module.groups(); ++g) {
    append(&zeros, pack_nibbles(module.n, kAwqOrder, [&](int64_t c) { return module.zero(c, g); }));
  }
  writer->add(name + ".qweight", "I32", {module.k, (module.n + 7) / 8}, words);
  writer->add(name + ".qzeros", "I32", {module.groups(), (module.n + 7) / 8}, zeros);
  add_scales(writer, name + ".scales", module, false, scale_type);
}

// No zero points when `symmetric`; a g_idx where the module has one.
inline void add_compressed_tensors(SafetensorsWriter* writer, const std::string& name, const Int4Module& module,
                                   bool symmetric = false, const std::string& scale_type = "BF16") {
  std::vector<uint32_t> words;
  for (int64_t c = 0; c < module.n; ++c) {
    append(&words, pack_nibbles(module.k, kInOrder, [&](int64_t i) { return module.code(c, i); }));
  }
  writer->add(name + ".weight_packed", "I32", {module.n, (module.k + 7) / 8}, words);
  writer->add(name + ".weight_shape", "I64", {2}, std::vector<int64_t>{module.n, module.k});
  add_scales(writer, name + ".weight_scale", module, true, scale_type);
  if (!module.g_idx.empty()) add_g_idx(writer, name + ".weight_g_idx", module);
  if (symmetric) return;
  std::vector<std::vector<uint32_t>> columns;
  for (int64_t g = 0; g < module.groups(); ++g) {
    columns.push_back(pack_nibbles(module.n, kInOrder, [&](int64_t c) { return module.zero(c, g); }));
  }
  writer->add(name + ".weight_zero_point", "I32", {(module.n + 7) / 8, module.groups()}, transposed(columns));
}

}  // namespace omni_files
