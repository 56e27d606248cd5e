// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/exact_avx512.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {
namespace {

template <typename T>
std::array<T, 64 / sizeof(T)> everywhere(T value) {
  std::array<T, 64 / sizeof(T)> values;
  values.fill(value);
  return values;
}

}  // namespace

// --- both products
// -------------------------------------------------------------------------------------------------------------------

void ExactAvx512::load_constants() {
  mov(reg_tmp, ptr[reg_args + offsetof(ExactTile, channels)]);
  for (int i = 0; i < vectors(); ++i) {
    kmovw(k_channels(i), reg_tmp.cvt32());
    if (i + 1 < vectors()) shr(reg_tmp, kLanes);
  }
}

// Vectors of a step in as few passes as the registers allow: all of them up to `rows_of_all` rows, else `most` at a time.
std::vector<ExactX64::Pass> ExactAvx512::split_vectors(int rows, int rows_of_all, int most) const {
  const int together = rows <= rows_of_all ? vectors() : (vectors() % most == 0 ? most : 1);
  std::vector<Pass> result;
  for (int first = 0; first < vectors(); first += together) {
    Pass pass = {w4() && !panel() ? first * 32 : first * 64, {}};
    for (int i = first; i < first + together; ++i) pass.channel.push_back(i * kLanes);
    result.push_back(pass);
  }
  return result;
}

// Sixteen floats of which only the wanted are read; +0 in the other lanes.
void ExactAvx512::load_floats(const Xbyak::Zmm& to, const Xbyak::Reg64& base, uint16_t type, int i) {
  if (type == OMNI_DTYPE_F32) {
    vmovups(to | k_channels(i) | T_z, ptr[base + i * kLanes * 4]);
  } else {
    vpmovzxwd(to | k_channels(i) | T_z, ptr[base + i * kLanes * 2]);
    vpslld(to, to, 16);
  }
}

void ExactAvx512::init_rows() {
  Xbyak::Label row;
  if (has_bias()) mov(reg_tmp, slot(kBias));
  for (int i = 0; i < vectors(); ++i) {
    if (has_bias()) {
      load_floats(Xbyak::Zmm(i), reg_tmp, OMNI_DTYPE_F32, i);
    } else {
      vpxord(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i));
    }
  }
  if (panel()) {
    lea(reg_c, ptr[reg_scratch + panel_bytes()]);
  } else {
    lea(reg_c, ptr[rsp + kStackC]);
  }
  mov(reg_count, ptr[reg_args + offsetof(ExactTile, rows)]);
  L(row);
  for (int i = 0; i < vectors(); ++i) vmovaps(ptr[reg_c + i * 64], Xbyak::Zmm(i));
  add(reg_c, kRowBytesC);
  dec(reg_count);
  jnz(row, T_NEAR);
}

void ExactAvx512::load_group() {
  mov(reg_tmp, slot(kScales));
  for (int i = 0; i < vectors(); ++i) {
    load_floats(zmm0, reg_tmp, config_.scale_type, i);
    vmovaps(scale_buffer(i * kLanes), zmm0);
  }
  // The same group of the next channel block: too scattered for the hardware prefetcher.
  const int bytes = static_cast<int>(kExactBlockChannels * config_.scale_bytes());
  for (int line = 0; line < bytes; line += 64) prefetcht0(ptr[reg_tmp + bytes + line]);
  add(reg_tmp, ptr[reg_args + offsetof(ExactTile, scale_stride)]);
  mov(slot(kScales), reg_tmp);
  if (!config_.zeros) return;
  mov(reg_tmp, slot(kZeros));
  for (int i = 0; i < vectors(); ++i) {
    vpmovzxbd(zmm0 | k_channels(i) | T_z, ptr[reg_tmp + i * kLanes]);
    if (sums_bytes() && i % 2 != 0) {
      vpslld(zmm0, zmm0, 4);
      vpaddd(zmm0, zmm0, zmm1);
    }
    vmovdqa32(zero_buffer(i * kLanes), zmm0);
    if (i % 2 == 0) vmovdqa32(zmm1, zmm0);
  }
  add(reg_tmp, ptr[reg_args + offsetof(ExactTile, zero_stride)]);
  mov(slot(kZeros), reg_tmp);
}

void ExactAvx512::start(int row, const Pass& pass, int rows) {
  const int count = static_cast<int>(pass.channel.size());
  if (config_.zeros) {
    // A dword of the buffer is (zero point, 0) in words, and the low word of the start is minus the sum of x.
    const Xbyak::Zmm sum(extra(0, rows, count).getIdx());
    vpbroadcastd(sum, start_address(row, 0));
    for (int i = 0; i < count; ++i) {
      vpmaddwd(Xbyak::Zmm(acc(row, i, count).getIdx()), sum, zero_buffer(pass.channel[static_cast<size_t>(i)]));
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    const Xbyak::Zmm sum(acc(row, i, count).getIdx());
    if (has_start()) {
      vpbroadcastd(sum, start_address(row, sums_bytes() ? i % 2 : 0));
    } else {
      vpxord(sum, sum, sum);
    }
  }
}

void ExactAvx512::store_rows() {
  Xbyak::Label row;
  const Xbyak::Reg64 reg_y = reg_x, reg_residual = reg_starts;
  if (panel()) {
    lea(reg_c, ptr[reg_scratch + panel_bytes()]);
  } else {
    lea(reg_c, ptr[rsp + kStackC]);
  }
  mov(reg_y, slot(kY));
  if (has_residual()) mov(reg_residual, slot(kResidual));
  mov(reg_count, ptr[reg_args + offsetof(ExactTile, rows)]);
  L(row);
  for (int i = 0; i < vectors(); ++i) {
    vmovaps(zmm0, ptr[reg_c + i * 64]);
    if (has_residual()) {
      load_floats(zmm1, reg_residual, config_.residual_type, i);
      vaddps(zmm0, zmm0, zmm1);
    }
    store_vector(zmm0, i, zmm1);
  }
  add(reg_c, kRowBytesC);
  add(reg_y, ptr[reg_args + offsetof(ExactTile, ldy)]);
  if (has_residual()) add(reg_residual, ptr[reg_args + offsetof(ExactTile, ld_residual)]);
  dec(reg_count);
  jnz(row, T_NEAR);
}

void ExactAvx512::store_vector(const Xbyak::Zmm& c, int i, const Xbyak::Zmm& tmp) {
  vcmpunordps(k_tmp, c, c);
  if (config_.y_type == OMNI_DTYPE_F32) {
    vbroadcastss(c | k_tmp, ptr[pool_word(0x7FC00000)]);
    vmovups(ptr[reg_x + i * kLanes * 4] | k_channels(i), c);
    return;
  }
  // As VCVTNEPS2BF16: subnormals become zeros of their sign, then round to nearest even on the integer: u + 0x7FFF + (bit 16 of u).
  vptestnmd(k_tmp2, c, ptr_b[pool_word(0x7F800000)]);
  vpandd(c | k_tmp2, c, ptr_b[pool_word(0x80000000)]);
  vpsrld(tmp, c, 16);
  vpandd(tmp, tmp, ptr_b[pool_word(1)]);
  vpaddd(tmp, tmp, ptr_b[pool_word(0x7FFF)]);
  vpaddd(c, c, tmp);
  vpsrld(c, c, 16);
  vpbroadcastd(c | k_tmp, ptr[pool_word(0x7FC0)]);
  vpmovdw(ptr[reg_x + i * kLanes * 2] | k_channels(i), c);
}

// --- VNNI
// ----------------------------------------------------------------------------------------------------------------------------

void ExactAvx512Vnni::load_constants() {
  ExactAvx512::load_constants();
  vpbroadcastd(zmm_mask, ptr[pool_word(w4() ? 0x0F0F0F0F : 0x80808080)]);
}

std::vector<ExactX64::Pass> ExactAvx512Vnni::passes(int rows) const { return split_vectors(rows, kPanelTile, 2); }

void ExactAvx512Vnni::load_step(const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const auto weight = [&](int i) { return Xbyak::Zmm(w(i, rows, count).getIdx()); };
  for (int i = 0; i < count; ++i) {
    if (panel()) {
      vmovdqa32(weight(i), weight_address(pass, step, i * 64));
    } else if (!w4()) {
      vpxord(weight(i), zmm_mask, weight_address(pass, step, i * 64));
    } else if (i % 2 == 0) {
      vmovdqu32(weight(i + 1), weight_address(pass, step, i * 32));
      vpandd(weight(i), weight(i + 1), zmm_mask);
    }
  }
}

void ExactAvx512Vnni::multiply(int row, const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Zmm x(extra(0, rows, count).getIdx());
  vpbroadcastd(x, x_address(row, step));
  for (int i = 0; i < count; ++i) {
    vpdpbusd(Xbyak::Zmm(acc(row, i, count).getIdx()), Xbyak::Zmm(w(i, rows, count).getIdx()), x);
  }
}

// 16 * high + low, less low, is 16 times what is wanted.
void ExactAvx512Vnni::separate(int row, const Pass& pass, int) {
  if (!sums_bytes()) return;
  const int count = static_cast<int>(pass.channel.size());
  for (int i = 0; i < count; i += 2) {
    const Xbyak::Zmm low(acc(row, i, count).getIdx()), bytes(acc(row, i + 1, count).getIdx());
    vpsubd(bytes, bytes, low);
    vpsrad(bytes, bytes, 4);
  }
}

// Unsigned bytes, [block_width][4] a step: a source register holds two panel registers (w4s) or one (w8s).
void ExactAvx512Vnni::fill_step(const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const auto weight = [&](int i) { return Xbyak::Zmm(w(i, rows, count).getIdx()); };
  const auto source = [&](int byte) { return ptr[reg_w + step * step_bytes() + byte]; };
  for (int i = 0; i < count; ++i) {
    if (!w4()) {
      vpxord(weight(i), zmm_mask, source(i * 64));
    } else if (i % 2 == 0) {
      vmovdqu32(weight(i + 1), source(i * 32));
      vpandd(weight(i), weight(i + 1), zmm_mask);
    } else {
      vpsrlw(weight(i), weight(i), 4);
      vpandd(weight(i), weight(i), zmm_mask);
    }
    vmovdqa32(weight_address(pass, step, i * 64), weight(i));
  }
}

// --- without VNNI
// --------------------------------------------------------------------------------------------------------------------

std::vector<ExactX64::Pass> ExactAvx512Bw::passes(int rows) const { return split_vectors(rows, w4() ? 6 : 4, 2); }

void ExactAvx512Bw::load_step(const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const auto weight = [&](int i) { return Xbyak::Zmm(w(i, rows, count).getIdx()); };
  for (int i = 0; i < count; ++i) {
    if (!w4()) {
      vmovdqu32(weight(2 * i + 1), weight_address(pass, step, i * 64));
      vpsllw(weight(2 * i), weight(2 * i + 1), 8);
      vpsraw(weight(2 * i), weight(2 * i), 8);
      vpsraw(weight(2 * i + 1), weight(2 * i + 1), 8);
    } else if (i % 2 == 0) {
      vmovdqu32(weight(i), weight_address(pass, step, i * 32));
      vpsrlw(weight(i + 1), weight(i), 4);
      vpandd(weight(i), weight(i), ptr[pool(everywhere<uint8_t>(0x0F))]);
      vpandd(weight(i + 1), weight(i + 1), ptr[pool(everywhere<uint8_t>(0x0F))]);
    }
  }
}

void ExactAvx512Bw::multiply(int row, const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Zmm x(extra(0, rows, count).getIdx()), product(extra(1, rows, count).getIdx()), odd(extra(2, rows, count).getIdx());
  vpbroadcastd(x, x_address(row, step));
  if (!w4()) {
    vpsraw(odd, x, 8);
    vpsllw(x, x, 8);
    vpsraw(x, x, 8);
  }
  for (int i = 0; i < count; ++i) {
    const Xbyak::Zmm sum(acc(row, i, count).getIdx());
    if (w4()) {
      vpmaddubsw(product, Xbyak::Zmm(w(i, rows, count).getIdx()), x);
      vpmaddwd(product, product, ptr[pool(everywhere<uint16_t>(1))]);
      vpaddd(sum, sum, product);
    } else {
      vpmaddwd(product, Xbyak::Zmm(w(2 * i, rows, count).getIdx()), x);
      vpaddd(sum, sum, product);
      vpmaddwd(product, Xbyak::Zmm(w(2 * i + 1, rows, count).getIdx()), odd);
      vpaddd(sum, sum, product);
    }
  }
}

}  // namespace okl::jit
