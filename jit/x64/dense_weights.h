// SPDX-License-Identifier: Apache-2.0
// Reading w16, w32, w8s and panels: how stored weights become operands, for AVX-512 and AVX2 alike.
#pragma once

#include "jit/x64/generator.h"
#include "kernels/gemm/dense_kernel.h"

namespace okl::jit {

// Bytes of weights per input and channel as they stand in memory.
int packed_bytes_per_eight(uint16_t format);  // of eight inputs of one channel

class DenseWeights : public Generator {
 protected:
  // What stands at reg_weights.
  enum class Storage : uint8_t {
    kFloats,   // w32, or a panel of fp32 in the order of slots
    kW16,      // read as fp32
    kW8s,      // read as fp32
    kPairs,    // w16 or a panel of bf16 pairs, for VDPBF16PS
    kW8sPairs  // read as bf16 pairs
  };

  DenseWeights(const DenseConfig& config, VectorWidth width, Storage storage)
      : Generator(width), config_(config), zmm_(width == VectorWidth::kZmm), storage_(storage) {}

  // Storage of the weights that a tile kernel multiplies.
  static Storage storage_of(const DenseConfig& config, DenseElement element) {
    const bool pairs = element == DenseElement::kBf16Pair, packed = config.panel != DensePanel::kRead;
    if (config.weights == OMNI_FORMAT_W8S && packed) return pairs ? Storage::kW8sPairs : Storage::kW8s;
    if (config.weights == OMNI_FORMAT_W16 && packed && !pairs) return Storage::kW16;
    return pairs ? Storage::kPairs : Storage::kFloats;
  }

  int lanes() const { return zmm_ ? 16 : 8; }
  int vector_bytes() const { return lanes() * 4; }
  int vectors() const { return config_.block_width / lanes(); }  // of the block
  Xbyak::Xmm v(int i) const { return zmm_ ? Xbyak::Xmm(Xbyak::Zmm(i)) : Xbyak::Xmm(Xbyak::Ymm(i)); }

  // A step is the smallest run of inputs that the storage keeps together: one dword for each channel.
  int step_inputs() const { return is_w8s() ? 4 : storage_ == Storage::kFloats ? 1 : 2; }
  // Dwords of prepared x, or vectors of operands, that go with a step.
  int step_slots() const { return multiplies_pairs() ? step_inputs() / 2 : step_inputs(); }
  bool is_w8s() const { return storage_ == Storage::kW8s || storage_ == Storage::kW8sPairs; }
  bool multiplies_pairs() const { return storage_ == Storage::kPairs || storage_ == Storage::kW8sPairs; }

  // Fills the constants that load_weight() needs: in v(30) and v(31), or v(15); those of w8s also where few rows leave registers
  // free.
  void load_weight_constants();
  // w = the weights for slot `slot` of the step at `at`, 16 or 8 channels. `tmp` is clobbered.
  void load_weight(const Xbyak::Xmm& w, const Xbyak::Address& at, int slot, const Xbyak::Xmm& tmp);
  // The same of a last step that holds one input, the even one of a pair.
  void load_last_weight(const Xbyak::Xmm& w, const Xbyak::Address& at);
  // The slot of x that a last step of one input multiplies.
  int last_slot() const { return storage_ == Storage::kW16 && config_.order == DenseOrder::kOddFirst ? 1 : 0; }

  const DenseConfig config_;
  const bool zmm_;
  const Storage storage_;

 private:
  // With one row the load ports decide: six broadcasts of constants for 64 weights are more than the weights themselves.
  static constexpr int kExponents = 20, kBiases = 22;
  bool constants_in_registers() const { return config_.rows * vectors() <= kExponents; }

  void load_even(const Xbyak::Xmm& w, const Xbyak::Address& at);
  void load_odd(const Xbyak::Xmm& w, const Xbyak::Address& at);
  void load_byte(const Xbyak::Xmm& w, const Xbyak::Address& at, int byte);
  void load_byte_avx512(const Xbyak::Zmm& w, const Xbyak::Address& at, int byte);
  void load_byte_avx2(const Xbyak::Ymm& w, const Xbyak::Address& at, int byte);
};

}  // namespace okl::jit
