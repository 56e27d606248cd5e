// SPDX-License-Identifier: Apache-2.0
// Decoding against what an assembler writes.
#include "jit/amx_model/instruction.h"

#include <gtest/gtest.h>

#include <functional>

#include "jit/amx_model/code_for_test.h"

namespace okl::amx_model {
namespace {

using test::Assembler;
using Xbyak::Reg64;
using Xbyak::Tmm;

struct Decoded : Instruction {
  explicit Decoded(const std::function<void(Assembler&)>& emit) {
    const std::vector<uint8_t> code = test::bytes_of(emit);
    static_cast<Instruction&>(*this) = decode(code.data());
    EXPECT_TRUE(opcode == Opcode::kNone || length == code.size());
  }
};

TEST(Decode, ConfigurationInstructions) {
  EXPECT_EQ(Decoded([](Assembler& a) { a.ldtilecfg(a.ptr[a.rdi]); }).opcode, Opcode::kLdTileCfg);
  EXPECT_EQ(Decoded([](Assembler& a) { a.sttilecfg(a.ptr[a.rsp + 64]); }).opcode, Opcode::kStTileCfg);
  EXPECT_EQ(Decoded([](Assembler& a) { a.tilerelease(); }).opcode, Opcode::kTileRelease);
  for (int t = 0; t < 8; ++t) {
    const Decoded zero([t](Assembler& a) { a.tilezero(Tmm(t)); });
    EXPECT_EQ(zero.opcode, Opcode::kTileZero);
    EXPECT_EQ(zero.reg, t);
  }
}

TEST(Decode, ConfigurationRelativeToTheInstructionPointer) {
  const Decoded load([](Assembler& a) {
    Xbyak::Label label;
    a.ldtilecfg(a.ptr[a.rip + label]);
    a.L(label);
  });
  EXPECT_EQ(load.opcode, Opcode::kLdTileCfg);
  EXPECT_EQ(load.base, Instruction::kRip);
  EXPECT_EQ(load.displacement, 0);
}

TEST(Decode, EveryDotProductAndRegister) {
  using Emit = void (*)(Assembler&, const Tmm&, const Tmm&, const Tmm&);
  const std::pair<Opcode, Emit> kinds[] = {
      {Opcode::kTdpbssd, [](Assembler& a, const Tmm& x, const Tmm& y, const Tmm& z) { a.tdpbssd(x, y, z); }},
      {Opcode::kTdpbsud, [](Assembler& a, const Tmm& x, const Tmm& y, const Tmm& z) { a.tdpbsud(x, y, z); }},
      {Opcode::kTdpbusd, [](Assembler& a, const Tmm& x, const Tmm& y, const Tmm& z) { a.tdpbusd(x, y, z); }},
      {Opcode::kTdpbuud, [](Assembler& a, const Tmm& x, const Tmm& y, const Tmm& z) { a.tdpbuud(x, y, z); }},
      {Opcode::kTdpbf16ps, [](Assembler& a, const Tmm& x, const Tmm& y, const Tmm& z) { a.tdpbf16ps(x, y, z); }}};
  for (const auto& [opcode, emit] : kinds) {
    for (int dst = 0; dst < 8; ++dst) {
      for (int left = 0; left < 8; ++left) {
        for (int right = 0; right < 8; ++right) {
          const Decoded dot([&, e = emit](Assembler& a) { e(a, Tmm(dst), Tmm(left), Tmm(right)); });
          const bool distinct = dst != left && left != right && right != dst;
          ASSERT_EQ(dot.opcode, distinct ? opcode : Opcode::kNone) << dst << " " << left << " " << right;
          if (!distinct) continue;
          EXPECT_EQ(dot.reg, dst);
          EXPECT_EQ(dot.rm, left);
          EXPECT_EQ(dot.second, right);
        }
      }
    }
  }
}

// Every base with every index, without and with displacements of one and four bytes.
TEST(Decode, TileMoveAddresses) {
  for (int base = 0; base < 16; ++base) {
    for (int index = 0; index < 16; ++index) {
      if (index == 4) continue;  // rsp cannot be an index
      for (const int displacement : {0, 64, -64, 4096, -70000}) {
        for (const int shift : {0, 3}) {
          const auto address = [&](Assembler& a) { return a.ptr[Reg64(base) + Reg64(index) * (1 << shift) + displacement]; };
          const Decoded moves[] = {Decoded([&](Assembler& a) { a.tileloadd(Tmm(3), address(a)); }),
                                   Decoded([&](Assembler& a) { a.tileloaddt1(Tmm(3), address(a)); }),
                                   Decoded([&](Assembler& a) { a.tilestored(address(a), Tmm(3)); })};
          for (const Decoded& move : moves) {
            EXPECT_EQ(move.opcode, &move == &moves[2] ? Opcode::kTileStore : Opcode::kTileLoad);
            EXPECT_EQ(move.reg, 3);
            EXPECT_EQ(move.base, base);
            EXPECT_EQ(move.index, index);
            EXPECT_EQ(move.scale_shift, shift);
            EXPECT_EQ(move.displacement, displacement);
          }
        }
      }
    }
  }
}

TEST(Decode, VectorDotProducts) {
  using Xbyak::Xmm;
  using Xbyak::Ymm;
  for (const int reg : {0, 7, 8, 15}) {
    const Decoded wide([&](Assembler& a) { a.vpdpbusd(Ymm(reg), Ymm(9), Ymm(15 - reg), Xbyak::VexEncoding); });
    EXPECT_EQ(wide.opcode, Opcode::kVpdpbusd);
    EXPECT_TRUE(wide.wide);
    EXPECT_EQ(wide.reg, reg);
    EXPECT_EQ(wide.second, 9);
    EXPECT_EQ(wide.rm, 15 - reg);
    const Decoded narrow([&](Assembler& a) { a.vpdpbusds(Xmm(reg), Xmm(2), a.ptr[a.r13 + a.r12 * 2 + 5], Xbyak::VexEncoding); });
    EXPECT_EQ(narrow.opcode, Opcode::kVpdpbusds);
    EXPECT_FALSE(narrow.wide);
    EXPECT_TRUE(narrow.in_memory);
    EXPECT_EQ(narrow.base, 13);
    EXPECT_EQ(narrow.index, 12);
    EXPECT_EQ(narrow.scale_shift, 1);
    EXPECT_EQ(narrow.displacement, 5);
  }
  EXPECT_EQ(Decoded([](Assembler& a) { a.vpdpwssd(Ymm(1), Ymm(2), Ymm(3), Xbyak::VexEncoding); }).opcode, Opcode::kVpdpwssd);
  EXPECT_EQ(Decoded([](Assembler& a) { a.vpdpwssds(Ymm(1), Ymm(2), Ymm(3), Xbyak::VexEncoding); }).opcode, Opcode::kVpdpwssds);
  EXPECT_EQ(Decoded([](Assembler& a) { a.vpdpbusd(Ymm(1), Ymm(2), Ymm(3), Xbyak::EvexEncoding); }).opcode, Opcode::kNone);
}

// Encodings that raise #UD on a processor with AMX must not run here.
TEST(Decode, UndefinedEncodings) {
  const std::vector<uint8_t> zero = test::bytes_of([](Assembler& a) { a.tilezero(Tmm(1)); });
  const auto with = [&](size_t at, uint8_t mask) {
    std::vector<uint8_t> changed = zero;
    changed[at] ^= mask;
    return decode(changed.data()).opcode;
  };
  EXPECT_EQ(with(0, 0), Opcode::kTileZero);
  EXPECT_EQ(with(1, 0x80), Opcode::kNone) << "VEX.R: tile 9";
  EXPECT_EQ(with(2, 0x80), Opcode::kNone) << "VEX.W";
  EXPECT_EQ(with(2, 0x04), Opcode::kNone) << "VEX.L";
  EXPECT_EQ(with(2, 0x08), Opcode::kNone) << "vvvv is not 1111b";
  EXPECT_EQ(with(4, 0x01), Opcode::kNone) << "ModRM.rm is not 0";
  EXPECT_EQ(with(3, 0x10), Opcode::kNone) << "another opcode";
  const uint8_t without_sib[] = {0xC4, 0xE2, 0x7B, 0x4B, 0x07};  // TILELOADD tmm0, [rdi] by ModRM alone
  EXPECT_EQ(decode(without_sib).opcode, Opcode::kNone);
  const uint8_t store_form_of_release[] = {0xC4, 0xE2, 0x78, 0x49, 0xC1};
  EXPECT_EQ(decode(store_form_of_release).opcode, Opcode::kNone);
  const uint8_t nop[] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
  EXPECT_EQ(decode(nop).opcode, Opcode::kNone);
}

}  // namespace
}  // namespace okl::amx_model
