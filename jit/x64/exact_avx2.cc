// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/exact_avx2.h"

#include <cstddef>

namespace okl::jit {
namespace {

template <typename T>
std::array<T, 32 / sizeof(T)> everywhere(T value) {
  std::array<T, 32 / sizeof(T)> values;
  values.fill(value);
  return values;
}

}  // namespace

// --- moving elements
// -----------------------------------------------------------------------------------------------------------------

void ExactAvx2Base::load_constants() {
  // 0 when every stored channel is wanted.
  mov(reg_tmp, ptr[reg_args + offsetof(ExactTile, channels)]);
  mov(reg_count, ~uint64_t{0} >> (kExactBlockChannels - config_.block_width));
  and_(reg_tmp, reg_count);
  sub(reg_tmp, reg_count);
  mov(slot(kPartial), reg_tmp);
}

// reg_count is the channel; jumps when it is not wanted. reg_tmp is clobbered.
void ExactAvx2Base::skip_unwanted(const Xbyak::Label& unwanted) {
  mov(reg_tmp, ptr[reg_args + offsetof(ExactTile, channels)]);
  bt(reg_tmp, reg_count);
  jnc(unwanted, T_NEAR);
}

// buffer[channel] = element as fp32 (bytes: as int32), 0 where it is not wanted. `from` is kept, reg_count, reg_tmp and ymm0 are
// not.
void ExactAvx2Base::copy_elements(int buffer, const Xbyak::Reg64& from, Element element) {
  Xbyak::Label partial, next, unwanted, done;
  cmp(slot(kPartial), 0);
  jne(partial, T_NEAR);
  for (int channel = 0; channel < config_.block_width; channel += kLanes) {
    switch (element) {
      case Element::kFloat:
        vmovups(ymm0, ptr[from + channel * 4]);
        break;
      case Element::kBf16:
        vpmovzxwd(ymm0, ptr[from + channel * 2]);
        vpslld(ymm0, ymm0, 16);
        break;
      case Element::kByte:
        vpmovzxbd(ymm0, ptr[from + channel]);
        break;
    }
    vmovaps(ptr[rsp + buffer + channel * 4], ymm0);
  }
  jmp(done, T_NEAR);
  L(partial);
  xor_(reg_count.cvt32(), reg_count.cvt32());
  L(next);
  mov(dword[rsp + reg_count * 4 + buffer], 0);
  skip_unwanted(unwanted);
  switch (element) {
    case Element::kFloat:
      mov(reg_tmp.cvt32(), dword[from + reg_count * 4]);
      break;
    case Element::kBf16:
      movzx(reg_tmp.cvt32(), word[from + reg_count * 2]);
      shl(reg_tmp.cvt32(), 16);
      break;
    case Element::kByte:
      movzx(reg_tmp.cvt32(), byte[from + reg_count]);
      break;
  }
  mov(dword[rsp + reg_count * 4 + buffer], reg_tmp.cvt32());
  L(unwanted);
  inc(reg_count);
  cmp(reg_count, config_.block_width);
  jl(next, T_NEAR);
  L(done);
}

// The wanted elements of a row of y, which the buffer holds as they are stored.
void ExactAvx2Base::copy_wanted(int buffer, const Xbyak::Reg64& to) {
  Xbyak::Label next, unwanted;
  xor_(reg_count.cvt32(), reg_count.cvt32());
  L(next);
  skip_unwanted(unwanted);
  if (y_bytes() == 4) {
    mov(reg_tmp.cvt32(), dword[rsp + reg_count * 4 + buffer]);
    mov(dword[to + reg_count * 4], reg_tmp.cvt32());
  } else {
    movzx(reg_tmp.cvt32(), word[rsp + reg_count * 2 + buffer]);
    mov(word[to + reg_count * 2], reg_tmp.cvt16());
  }
  L(unwanted);
  inc(reg_count);
  cmp(reg_count, config_.block_width);
  jl(next, T_NEAR);
}

// --- rows
// ----------------------------------------------------------------------------------------------------------------------------

void ExactAvx2Base::init_rows() {
  Xbyak::Label row;
  if (has_bias()) {
    mov(reg_x, slot(kBias));
    copy_elements(kScaleBuffer, reg_x, Element::kFloat);
  } else {
    vxorps(ymm0, ymm0, ymm0);
  }
  lea(reg_c, ptr[rsp + kStackC]);
  mov(reg_count, ptr[reg_args + offsetof(ExactTile, rows)]);
  L(row);
  for (int channel = 0; channel < config_.block_width; channel += kLanes) {
    if (has_bias()) vmovaps(ymm0, ptr[rsp + kScaleBuffer + channel * 4]);
    vmovaps(ptr[reg_c + channel * 4], ymm0);
  }
  add(reg_c, kRowBytesC);
  dec(reg_count);
  jnz(row, T_NEAR);
}

void ExactAvx2Base::load_group() {
  mov(reg_x, slot(kScales));
  copy_elements(kScaleBuffer, reg_x, element_of(config_.scale_type));
  // The same group of the next channel block: too scattered for the hardware prefetcher.
  const int bytes = static_cast<int>(kExactBlockChannels * config_.scale_bytes());
  for (int line = 0; line < bytes; line += 64) prefetcht0(ptr[reg_x + bytes + line]);
  add(reg_x, ptr[reg_args + offsetof(ExactTile, scale_stride)]);
  mov(slot(kScales), reg_x);
  if (!config_.zeros) return;
  mov(reg_x, slot(kZeros));
  copy_elements(kZeroBuffer, reg_x, Element::kByte);
  add(reg_x, ptr[reg_args + offsetof(ExactTile, zero_stride)]);
  mov(slot(kZeros), reg_x);
  if (!sums_bytes()) return;
  for (int high = 16; high < config_.block_width; high += high % 32 == 24 ? 24 : kLanes) {
    vmovdqa(ymm0, zero_buffer(high));
    vpslld(ymm0, ymm0, 4);
    vpaddd(ymm0, ymm0, zero_buffer(high - 16));
    vmovdqa(zero_buffer(high), ymm0);
  }
}

std::vector<ExactX64::Pass> ExactAvx2Base::passes(int) const {
  std::vector<Pass> result;
  if (w4()) {
    for (int channel = 0; channel < config_.block_width; channel += channel % 32 == 8 ? 24 : kLanes) {
      result.push_back({channel / 32 * 64 + channel % 32 * 4, {channel, channel + 16}});
    }
  } else {
    for (int channel = 0; channel < config_.block_width; channel += 2 * kLanes) {
      result.push_back({channel * 4, {channel, channel + kLanes}});
    }
  }
  return result;
}

void ExactAvx2Base::start(int row, const Pass& pass, int rows) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Ymm sum = ymm(extra(0, rows, count));
  if (config_.zeros) vpbroadcastd(sum, start_address(row, 0));
  for (int i = 0; i < count; ++i) {
    const Xbyak::Ymm first = ymm(acc(row, i, count));
    if (config_.zeros) {
      // A dword of the buffer is (zero point, 0) in words, and the low word of the start is minus the sum of x.
      vpmaddwd(first, sum, zero_buffer(pass.channel[static_cast<size_t>(i)]));
    } else if (has_start()) {
      vpbroadcastd(first, start_address(row, sums_bytes() ? i % 2 : 0));
    } else {
      vpxor(first, first, first);
    }
  }
}

// As VCVTNEPS2BF16, into the low half of `value`: subnormals become zeros of their sign, any NaN 0x7FC0.
void ExactAvx2Base::round_bf16(const Xbyak::Ymm& value, const Xbyak::Ymm& a, const Xbyak::Ymm& b) {
  vpand(a, value, ptr[pool(everywhere<uint32_t>(0x7F800000))]);
  vpxor(b, b, b);
  vpcmpeqd(a, a, b);
  vpand(b, value, ptr[pool(everywhere<uint32_t>(0x80000000))]);
  vpblendvb(value, value, b, a);
  vcmpunordps(a, value, value);
  vpsrld(b, value, 16);
  vpand(b, b, ptr[pool(everywhere<uint32_t>(1))]);
  vpaddd(b, b, ptr[pool(everywhere<uint32_t>(0x7FFF))]);
  vpaddd(value, value, b);
  vpsrld(value, value, 16);
  vpblendvb(value, value, ptr[pool(everywhere<uint32_t>(0x7FC0))], a);
  vpackusdw(value, value, value);
  vpermq(value, value, 0x08);
}

void ExactAvx2Base::store_rows() {
  Xbyak::Label row, partial, stored;
  const Xbyak::Reg64 reg_y = reg_x, reg_residual = reg_starts, reg_rows = reg_tiles;
  lea(reg_c, ptr[rsp + kStackC]);
  mov(reg_y, slot(kY));
  if (has_residual()) mov(reg_residual, slot(kResidual));
  mov(reg_rows, ptr[reg_args + offsetof(ExactTile, rows)]);
  L(row);
  if (has_residual()) copy_elements(kScaleBuffer, reg_residual, element_of(config_.residual_type));
  for (int channel = 0; channel < config_.block_width; channel += kLanes) {
    vmovaps(ymm0, ptr[reg_c + channel * 4]);
    if (has_residual()) vaddps(ymm0, ymm0, ptr[rsp + kScaleBuffer + channel * 4]);
    if (y_bytes() == 4) {
      vcmpunordps(ymm1, ymm0, ymm0);
      vblendvps(ymm0, ymm0, ptr[pool(everywhere<uint32_t>(0x7FC00000))], ymm1);
      vmovaps(ptr[rsp + kZeroBuffer + channel * 4], ymm0);
    } else {
      round_bf16(ymm0, ymm1, ymm2);
      vmovdqa(ptr[rsp + kZeroBuffer + channel * 2], xmm0);
    }
  }
  cmp(slot(kPartial), 0);
  jne(partial, T_NEAR);
  for (int byte = 0; byte < config_.block_width * y_bytes(); byte += 32) {
    vmovdqa(ymm0, ptr[rsp + kZeroBuffer + byte]);
    vmovdqu(ptr[reg_y + byte], ymm0);
  }
  jmp(stored, T_NEAR);
  L(partial);
  copy_wanted(kZeroBuffer, reg_y);
  L(stored);
  add(reg_c, kRowBytesC);
  add(reg_y, ptr[reg_args + offsetof(ExactTile, ldy)]);
  if (has_residual()) add(reg_residual, ptr[reg_args + offsetof(ExactTile, ld_residual)]);
  dec(reg_rows);
  jnz(row, T_NEAR);
}

// --- AVX-VNNI
// ------------------------------------------------------------------------------------------------------------------------

void ExactAvxVnni::load_constants() {
  ExactAvx2Base::load_constants();
  vpbroadcastd(ymm_mask, ptr[pool_word(w4() ? 0x0F0F0F0F : 0x80808080)]);
}

void ExactAvxVnni::load_step(const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Ymm first = ymm(w(0, rows, count)), second = ymm(w(1, rows, count));
  if (w4()) {
    vmovdqu(second, weight_address(pass, step, 0));
    vpand(first, second, ymm_mask);
  } else {
    vpxor(first, ymm_mask, weight_address(pass, step, 0));
    vpxor(second, ymm_mask, weight_address(pass, step, 32));
  }
}

void ExactAvxVnni::multiply(int row, const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Ymm x = ymm(extra(0, rows, count));
  vpbroadcastd(x, x_address(row, step));
  for (int i = 0; i < count; ++i) {
    vpdpbusd(ymm(acc(row, i, count)), ymm(w(i, rows, count)), x, Xbyak::VexEncoding);
  }
}

// 16 * high + low, less low, is 16 times what is wanted.
void ExactAvxVnni::separate(int row, const Pass& pass, int) {
  if (!w4()) return;
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Ymm low = ymm(acc(row, 0, count)), bytes = ymm(acc(row, 1, count));
  vpsubd(bytes, bytes, low);
  vpsrad(bytes, bytes, 4);
}

// --- AVX2
// ----------------------------------------------------------------------------------------------------------------------------

void ExactAvx2::load_step(const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const auto weight = [&](int i) { return ymm(w(i, rows, count)); };
  if (w4()) {
    vmovdqu(weight(0), weight_address(pass, step, 0));
    vpsrlw(weight(1), weight(0), 4);
    vpand(weight(0), weight(0), ptr[pool(everywhere<uint8_t>(0x0F))]);
    vpand(weight(1), weight(1), ptr[pool(everywhere<uint8_t>(0x0F))]);
    return;
  }
  for (int i = 0; i < count; ++i) {
    vmovdqu(weight(2 * i + 1), weight_address(pass, step, i * 32));
    vpsllw(weight(2 * i), weight(2 * i + 1), 8);
    vpsraw(weight(2 * i), weight(2 * i), 8);
    vpsraw(weight(2 * i + 1), weight(2 * i + 1), 8);
  }
}

void ExactAvx2::multiply(int row, const Pass& pass, int rows, int step) {
  const int count = static_cast<int>(pass.channel.size());
  const Xbyak::Ymm x = ymm(extra(0, rows, count)), product = ymm(extra(1, rows, count));
  vpbroadcastd(x, x_address(row, step));
  if (w4()) {
    for (int i = 0; i < count; ++i) {
      const Xbyak::Ymm sum = ymm(acc(row, i, count));
      vpmaddubsw(product, ymm(w(i, rows, count)), x);
      vpmaddwd(product, product, ptr[pool(everywhere<uint16_t>(1))]);
      vpaddd(sum, sum, product);
    }
    return;
  }
  const Xbyak::Ymm odd = ymm(extra(2, rows, count));
  vpsraw(odd, x, 8);
  vpsllw(x, x, 8);
  vpsraw(x, x, 8);
  for (int i = 0; i < count; ++i) {
    const Xbyak::Ymm sum = ymm(acc(row, i, count));
    vpmaddwd(product, ymm(w(2 * i, rows, count)), x);
    vpaddd(sum, sum, product);
    vpmaddwd(product, ymm(w(2 * i + 1, rows, count)), odd);
    vpaddd(sum, sum, product);
  }
}

}  // namespace okl::jit
