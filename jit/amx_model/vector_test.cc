// SPDX-License-Identifier: Apache-2.0
// AVX-VNNI in the signal frame: the model against the processor's own instruction where it has one, else against the arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "jit/amx_model/code_for_test.h"
#include "jit/amx_model/emulator.h"
#include "jit/amx_model/vector_dot.h"
#include "kernels/cpu/machine.h"

namespace okl::amx_model {
namespace {

using test::Assembler;
using test::Function;
using Xbyak::Xmm;
using Xbyak::Ymm;

class VectorEmulator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (jit::code_state() == jit::CodeState::kRefused) GTEST_SKIP() << jit::code_state_reason();
  }
  const Emulator emulator_;
};

// Loads 0: sum, 1: left, 2: right from rdi, runs, stores 32 bytes of the sum to rsi. Registers 9, 14 and 3 take both VEX.R and
// VEX.B.
template <typename Run>
Function vector_function(bool wide, bool from_memory, bool marked, const Run& run) {
  return Function([&](Assembler& code) {
    code.vmovups(Ymm(9), code.ptr[code.rdi]);
    code.vmovups(Ymm(14), code.ptr[code.rdi + 32]);
    code.vmovups(Ymm(3), code.ptr[code.rdi + 64]);
    code.mov(code.r10, 8);
    if (marked) code.marker();
    if (from_memory) {
      const Xbyak::Address right = code.ptr[code.rdi + code.r10 * 4 + 32];
      wide ? run(code, Ymm(9), Ymm(14), right) : run(code, Xmm(9), Xmm(14), right);
    } else {
      wide ? run(code, Ymm(9), Ymm(14), Ymm(3)) : run(code, Xmm(9), Xmm(14), Xmm(3));
    }
    code.vmovups(code.ptr[code.rsi], Ymm(9));
    code.vmovups(code.ptr[code.rsi + 32], Ymm(14));
    code.vzeroupper();
  });
}

struct VectorKind {
  Opcode opcode;
  void (*run)(Assembler& code, const Xmm& sum, const Xmm& left, const Xbyak::Operand& right);
};

constexpr auto kVex = Xbyak::VexEncoding;
const VectorKind kVectorKinds[] = {
    {Opcode::kVpdpbusd, [](Assembler& c, const Xmm& s, const Xmm& l, const Xbyak::Operand& r) { c.vpdpbusd(s, l, r, kVex); }},
    {Opcode::kVpdpbusds, [](Assembler& c, const Xmm& s, const Xmm& l, const Xbyak::Operand& r) { c.vpdpbusds(s, l, r, kVex); }},
    {Opcode::kVpdpwssd, [](Assembler& c, const Xmm& s, const Xmm& l, const Xbyak::Operand& r) { c.vpdpwssd(s, l, r, kVex); }},
    {Opcode::kVpdpwssds, [](Assembler& c, const Xmm& s, const Xmm& l, const Xbyak::Operand& r) { c.vpdpwssds(s, l, r, kVex); }}};

std::array<VectorBytes, 3> random_vectors(std::mt19937& random) {
  std::array<VectorBytes, 3> values;
  for (VectorBytes& value : values) {
    const uint32_t extremes = random() % 4;  // whole vectors of 0x7F, 0x80 and 0xFF meet saturation
    for (uint8_t& byte : value)
      byte = extremes == 0 ? std::array<uint8_t, 4>{0x7F, 0x80, 0xFF, 0}[random() % 4] : static_cast<uint8_t>(random());
  }
  return values;
}

TEST_F(VectorEmulator, InstructionsRunInTheSignalFrame) {
  if ((hardware_isa() & OMNI_ISA_AVX2) == 0) GTEST_SKIP() << "the test's own code needs AVX";
  const bool native = (hardware_isa() & OMNI_ISA_AVX_VNNI) != 0;
  std::mt19937 random(4);
  for (const VectorKind& kind : kVectorKinds) {
    for (const bool wide : {false, true}) {
      for (const bool from_memory : {false, true}) {
        const Function modelled = vector_function(wide, from_memory, true, kind.run);
        const Function plain = vector_function(wide, from_memory, false, kind.run);
        for (int trial = 0; trial < 150; ++trial) {
          const std::array<VectorBytes, 3> in = random_vectors(random);
          std::array<VectorBytes, 2> out{}, expected{};
          const Counts before = this_thread_counts();
          modelled(in.data(), out.data());
          EXPECT_EQ(this_thread_counts().vector_instructions, before.vector_instructions + 1);
          if (native) {
            plain(in.data(), expected.data());
            EXPECT_EQ(this_thread_counts().vector_instructions, before.vector_instructions + 1) << "the processor ran it";
          } else {
            expected = {in[0], in[1]};
            vector_dot(kind.opcode, expected[0], in[1], in[2], wide ? 32 : 16);
            if (!wide) std::fill(expected[0].begin() + 16, expected[0].end(), uint8_t{0});
          }
          ASSERT_EQ(out, expected) << "opcode " << int(kind.opcode) << " wide " << wide << " memory " << from_memory;
        }
      }
    }
  }
}

// VEX writes clear the register up to its full width, and what a frame did not save reads as zero.
TEST_F(VectorEmulator, WritesClearTheRestOfTheRegister) {
  if ((hardware_isa() & OMNI_ISA_AVX512F) == 0) GTEST_SKIP() << "no ZMM registers";
  const Function function([](Assembler& code) {
    code.vpternlogd(Xbyak::Zmm(0), Xbyak::Zmm(0), Xbyak::Zmm(0), 0xFF);
    code.vpternlogd(Xbyak::Zmm(1), Xbyak::Zmm(1), Xbyak::Zmm(1), 0xFF);
    code.marker();
    code.vpdpbusd(Xmm(0), Xmm(0), Xmm(0), kVex);
    code.vmovups(code.ptr[code.rdi], Xbyak::Zmm(0));
    code.vmovups(code.ptr[code.rdi + 64], Xbyak::Zmm(1));
    code.vzeroall();
    code.marker();
    code.vpdpbusd(Ymm(2), Ymm(3), Ymm(4), kVex);
    code.vmovups(code.ptr[code.rdi + 128], Xbyak::Zmm(2));
    code.vzeroupper();
  });
  int32_t out[48] = {};
  function(out);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], -1 - 4 * 255);
  for (int i = 4; i < 16; ++i) EXPECT_EQ(out[i], 0) << i;
  for (int i = 16; i < 32; ++i) EXPECT_EQ(out[i], -1) << i;
  for (int i = 32; i < 48; ++i) EXPECT_EQ(out[i], 0) << i;
}

}  // namespace
}  // namespace okl::amx_model
