// SPDX-License-Identifier: Apache-2.0
// Class exact on AVX-512: with VNNI, and without it in widened products.
//
// VPDPBUSD multiplies unsigned by signed bytes, so weights are the unsigned side. The direct path does not unpack w4s: with b = 16
// * high + low, one AND gives the low codes and b itself goes into the second product, whose sum has 16 * high + low; the fold
// takes the low sum off again. int8 weights become unsigned by flipping their top bit. Accumulators begin at minus the zero point
// times the sum of x, so that no correction is left for the end.
#pragma once

#include "jit/x64/exact_x64.h"

namespace okl::jit {

class ExactAvx512 : public ExactX64 {
 protected:
  ExactAvx512(const ExactConfig& config, int direct_tile) : ExactX64(config, VectorWidth::kZmm, direct_tile) {}

  static constexpr int kLanes = 16;

  void load_constants() override;
  void init_rows() override;
  void load_group() override;
  void store_rows() override;
  void start(int row, const Pass& pass, int rows) override;

  int vectors() const { return config_.block_width / kLanes; }
  virtual bool has_start() const { return true; }
  // Whether the second vector of a pair sums whole bytes.
  virtual bool sums_bytes() const { return false; }
  std::vector<Pass> split_vectors(int rows, int rows_of_all, int most) const;

  Xbyak::Opmask k_channels(int i) const { return Xbyak::Opmask(1 + i); }
  const Xbyak::Opmask k_tmp = k5;
  const Xbyak::Opmask k_tmp2 = k6;

 private:
  void load_floats(const Xbyak::Zmm& to, const Xbyak::Reg64& base, uint16_t type, int i);
  void store_vector(const Xbyak::Zmm& c, int i, const Xbyak::Zmm& tmp);
};

// VPDPBUSD.
class ExactAvx512Vnni final : public ExactAvx512 {
 public:
  static constexpr int kDirectTile = 14;
  explicit ExactAvx512Vnni(const ExactConfig& config) : ExactAvx512(config, kDirectTile) {}

 private:
  void load_constants() override;
  std::vector<Pass> passes(int rows) const override;
  void load_step(const Pass& pass, int rows, int step) override;
  void multiply(int row, const Pass& pass, int rows, int step) override;
  void separate(int row, const Pass& pass, int rows) override;
  void fill_step(const Pass& pass, int rows, int step) override;
  bool sums_bytes() const override { return w4() && !panel(); }

  const Xbyak::Zmm zmm_mask = Xbyak::Zmm(31);  // 0x0F, or 0x80 for int8 weights
};

// Without VNNI. Codes of four bits: VPMADDUBSW, whose pairs stay below 2 * 15 * 128. int8 weights: even and odd bytes widened to 16
// bits, VPMADDWD.
class ExactAvx512Bw final : public ExactAvx512 {
 public:
  static constexpr int kDirectTile = 12;
  explicit ExactAvx512Bw(const ExactConfig& config) : ExactAvx512(config, kDirectTile) {}

 private:
  std::vector<Pass> passes(int rows) const override;
  int weight_registers(int vectors) const override { return w4() ? vectors : 2 * vectors; }
  void load_step(const Pass& pass, int rows, int step) override;
  void multiply(int row, const Pass& pass, int rows, int step) override;
  bool has_start() const override { return w4(); }
};

}  // namespace okl::jit
