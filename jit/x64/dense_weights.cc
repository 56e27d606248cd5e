// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/dense_weights.h"

#include <bit>

namespace okl::jit {
namespace {

constexpr uint32_t kOddHalf = 0xFFFF0000;

// An int8 in the mantissa of a float: byte 0 of 2^23 + u and byte 1 of 2^15 + u weigh one per unit, u = value + 128 (the exclusive
// or turns its sign bit round). The subtraction that leaves the value is exact.
struct ByteConstants {
  uint32_t mask, exponent;
  float bias;
};
constexpr ByteConstants byte_constants[] = {{0x000000FF, 0x4B000080, 0x1p23F + 128.0F}, {0x0000FF00, 0x47008000, 0x1p15F + 128.0F}};

template <typename T>
std::array<T, 8> eight(T value) {
  std::array<T, 8> values;
  values.fill(value);
  return values;
}

}  // namespace

int packed_bytes_per_eight(uint16_t format) { return format == OMNI_FORMAT_W32 ? 32 : format == OMNI_FORMAT_W16 ? 16 : 8; }

void DenseWeights::load_weight_constants() {
  if (storage_ == Storage::kW16) {
    if (zmm_) {
      vpbroadcastd(Xbyak::Zmm(31), ptr[pool_word(kOddHalf)]);
    } else {
      vbroadcastss(Xbyak::Ymm(15), ptr[pool_word(kOddHalf)]);
    }
  }
  if (is_w8s() && zmm_) {
    for (int place = 0; place < 2; ++place) {
      vpbroadcastd(Xbyak::Zmm(30 + place), ptr[pool_word(byte_constants[place].mask)]);
      if (!constants_in_registers()) continue;
      vpbroadcastd(Xbyak::Zmm(kExponents + place), ptr[pool_word(byte_constants[place].exponent)]);
      vbroadcastss(Xbyak::Zmm(kBiases + place), ptr[pool_word(std::bit_cast<uint32_t>(byte_constants[place].bias))]);
    }
  }
}

void DenseWeights::load_weight(const Xbyak::Xmm& w, const Xbyak::Address& at, int slot, const Xbyak::Xmm& tmp) {
  const bool odd_first = config_.order == DenseOrder::kOddFirst;
  switch (storage_) {
    case Storage::kFloats:
    case Storage::kPairs:
      vmovups(w, at);
      break;
    case Storage::kW16:
      if ((slot == 0) == odd_first) {
        load_odd(w, at);
      } else {
        load_even(w, at);
      }
      break;
    case Storage::kW8s:
      load_byte(w, at, odd_first ? slot ^ 1 : slot);
      break;
    case Storage::kW8sPairs: {
      // fp32 of an int8 ends in 16 zero bits: the odd input over the even one shifted down is the pair.
      const Xbyak::Zmm odd(w.getIdx()), even(tmp.getIdx());
      load_byte(odd, at, 2 * slot + 1);
      load_byte(even, at, 2 * slot);
      vpsrld(even, even, 16);
      vpord(odd, odd, even);
      break;
    }
  }
}

void DenseWeights::load_last_weight(const Xbyak::Xmm& w, const Xbyak::Address& at) {
  load_even(w, at);
  if (storage_ == Storage::kPairs) vpsrld(Xbyak::Zmm(w.getIdx()), Xbyak::Zmm(w.getIdx()), 16);
}

void DenseWeights::load_even(const Xbyak::Xmm& w, const Xbyak::Address& at) {
  if (zmm_) {
    vpslld(Xbyak::Zmm(w.getIdx()), at, 16);
    return;
  }
  const Xbyak::Ymm half(w.getIdx());
  vmovdqu(half, at);
  vpslld(half, half, 16);
}

void DenseWeights::load_odd(const Xbyak::Xmm& w, const Xbyak::Address& at) {
  if (zmm_) {
    vpandd(Xbyak::Zmm(w.getIdx()), Xbyak::Zmm(31), at);
  } else {
    vpand(Xbyak::Ymm(w.getIdx()), Xbyak::Ymm(15), at);
  }
}

void DenseWeights::load_byte(const Xbyak::Xmm& w, const Xbyak::Address& at, int byte) {
  if (zmm_) {
    load_byte_avx512(Xbyak::Zmm(w.getIdx()), at, byte);
  } else {
    load_byte_avx2(Xbyak::Ymm(w.getIdx()), at, byte);
  }
}

// VPMOVSXBD would put every weight through p5 and wants bytes in another order. This is 9 slots on p0 and p5 for 64 weights.
void DenseWeights::load_byte_avx512(const Xbyak::Zmm& w, const Xbyak::Address& at, int byte) {
  constexpr uint8_t kAndThenXor = 0x6A;  // (w & mask) ^ exponent
  if (byte == 3) {
    vpsrad(w, at, 24);
    vcvtdq2ps(w, w);
    return;
  }
  const int place = byte % 2;
  if (byte == 2) {
    vpsrld(w, at, 16);
  } else {
    vmovdqu32(w, at);
  }
  if (constants_in_registers()) {
    vpternlogd(w, Xbyak::Zmm(30 + place), Xbyak::Zmm(kExponents + place), kAndThenXor);
    vsubps(w, w, Xbyak::Zmm(kBiases + place));
  } else {
    vpternlogd(w, Xbyak::Zmm(30 + place), ptr_b[pool_word(byte_constants[place].exponent)], kAndThenXor);
    vsubps(w, w, ptr_b[pool_word(std::bit_cast<uint32_t>(byte_constants[place].bias))]);
  }
}

void DenseWeights::load_byte_avx2(const Xbyak::Ymm& w, const Xbyak::Address& at, int byte) {
  vmovdqu(w, at);
  if (byte == 3) {
    vpsrad(w, w, 24);
    vcvtdq2ps(w, w);
    return;
  }
  if (byte == 2) vpsrld(w, w, 16);
  const ByteConstants& constants = byte_constants[byte % 2];
  vpand(w, w, ptr[pool(eight(constants.mask))]);
  vpxor(w, w, ptr[pool(eight(constants.exponent))]);
  vsubps(w, w, ptr[pool(eight(constants.bias))]);
}

}  // namespace okl::jit
