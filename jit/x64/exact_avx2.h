// SPDX-License-Identifier: Apache-2.0
// Class exact in 256-bit registers: AVX-VNNI, and AVX2 in widened products. See exact_avx512.h for the arithmetic.
//
// A register of the packed weights is two halves here, so a pass covers 8 low and 8 high channels (w4s) or 16 (w8s). AVX2 has no
// masks for bytes and words: blocks of which every stored channel is wanted move in vectors, others element by element.
#pragma once

#include "jit/x64/exact_x64.h"

namespace okl::jit {

class ExactAvx2Base : public ExactX64 {
 protected:
  ExactAvx2Base(const ExactConfig& config, int direct_tile) : ExactX64(config, VectorWidth::kYmm, direct_tile) {}

  static constexpr int kLanes = 8;

  void load_constants() override;
  void init_rows() override;
  void load_group() override;
  void store_rows() override;
  void start(int row, const Pass& pass, int rows) override;
  std::vector<Pass> passes(int rows) const override;

  virtual bool has_start() const { return true; }
  virtual bool sums_bytes() const { return false; }
  Xbyak::Ymm ymm(const Xbyak::Xmm& any) const { return Xbyak::Ymm(any.getIdx()); }

 private:
  // What stands in an array of one element a channel.
  enum class Element : uint8_t { kFloat, kBf16, kByte };
  static Element element_of(uint16_t type) { return type == OMNI_DTYPE_F32 ? Element::kFloat : Element::kBf16; }

  void skip_unwanted(const Xbyak::Label& unwanted);
  void copy_elements(int buffer, const Xbyak::Reg64& from, Element element);
  void round_bf16(const Xbyak::Ymm& value, const Xbyak::Ymm& a, const Xbyak::Ymm& b);
  void copy_wanted(int buffer, const Xbyak::Reg64& to);
};

// VPDPBUSD in its VEX form.
class ExactAvxVnni final : public ExactAvx2Base {
 public:
  static constexpr int kDirectTile = 6;
  explicit ExactAvxVnni(const ExactConfig& config) : ExactAvx2Base(config, kDirectTile) {}

 private:
  void load_constants() override;
  void load_step(const Pass& pass, int rows, int step) override;
  void multiply(int row, const Pass& pass, int rows, int step) override;
  void separate(int row, const Pass& pass, int rows) override;
  bool sums_bytes() const override { return w4(); }

  const Xbyak::Ymm ymm_mask = Xbyak::Ymm(15);  // 0x0F, or 0x80 for int8 weights
};

// Codes of four bits: VPMADDUBSW, whose pairs stay below 2 * 15 * 128. int8 weights: even and odd bytes widened to 16 bits,
// VPMADDWD.
class ExactAvx2 final : public ExactAvx2Base {
 public:
  static constexpr int kDirectTileW4 = 6, kDirectTileW8 = 4;
  explicit ExactAvx2(const ExactConfig& config) : ExactAvx2Base(config, config.is_w4() ? kDirectTileW4 : kDirectTileW8) {}

 private:
  int weight_registers(int vectors) const override { return w4() ? vectors : 2 * vectors; }
  void load_step(const Pass& pass, int rows, int step) override;
  void multiply(int row, const Pass& pass, int rows, int step) override;
  bool has_start() const override { return w4(); }
};

}  // namespace okl::jit
