// SPDX-License-Identifier: Apache-2.0
#include "jit/amx_model/instruction.h"

#include <cstring>

namespace okl::amx_model {
namespace {

enum Prefix : uint8_t { kNp = 0, k66 = 1, kF3 = 2, kF2 = 3 };  // VEX.pp

constexpr uint8_t kVex3 = 0xC4, kMap0F38 = 2, kRegisterForm = 3, kSibFollows = 4, kNoBase = 5;

struct Vex {
  bool r, x, b;  // as bit 3 of a register number
  bool w, l;
  uint8_t second, prefix;
};

// Intel SDM volume 2, "VEX prefix": R, X, B and vvvv are stored inverted.
Vex read_vex(const uint8_t* code) {
  return {(code[1] & 0x80) == 0,
          (code[1] & 0x40) == 0,
          (code[1] & 0x20) == 0,
          (code[2] & 0x80) != 0,
          (code[2] & 0x04) != 0,
          static_cast<uint8_t>(~code[2] >> 3 & 15),
          static_cast<uint8_t>(code[2] & 3)};
}

// ModRM, SIB and displacement at `code`; returns the bytes that they take.
uint8_t read_operand(const uint8_t* code, const Vex& vex, Instruction& out) {
  const uint8_t mod = code[0] >> 6, rm = code[0] & 7;
  out.reg = static_cast<uint8_t>((code[0] >> 3 & 7) | (vex.r ? 8 : 0));
  if (mod == kRegisterForm) {
    out.rm = static_cast<uint8_t>(rm | (vex.b ? 8 : 0));
    return 1;
  }
  out.in_memory = true;
  uint8_t used = 1, base = rm;
  if (rm == kSibFollows) {
    const uint8_t sib = code[used++];
    const auto index = static_cast<uint8_t>((sib >> 3 & 7) | (vex.x ? 8 : 0));
    if (index != 4) out.index = index;  // 4 is "none", 12 is r12
    out.scale_shift = sib >> 6;
    base = sib & 7;
  }
  if (mod == 0 && base == kNoBase) {
    out.base = rm == kSibFollows ? Instruction::kNoRegister : Instruction::kRip;
    std::memcpy(&out.displacement, code + used, 4);
    return used + 4;
  }
  out.base = static_cast<uint8_t>(base | (vex.b ? 8 : 0));
  if (mod == 1) out.displacement = static_cast<int8_t>(code[used++]);
  if (mod == 2) {
    std::memcpy(&out.displacement, code + used, 4);
    used += 4;
  }
  return used;
}

Opcode configuration_opcode(const Vex& vex, uint8_t modrm, const Instruction& operand) {
  if (operand.in_memory && operand.reg == 0) {
    if (vex.prefix == kNp) return Opcode::kLdTileCfg;
    if (vex.prefix == k66) return Opcode::kStTileCfg;
  }
  if (vex.prefix == kNp && modrm == 0xC0 && !vex.r && !vex.b) return Opcode::kTileRelease;
  if (vex.prefix == kF2 && !operand.in_memory && (modrm & 7) == 0) return Opcode::kTileZero;
  return Opcode::kNone;
}

Opcode move_opcode(const Vex& vex, uint8_t modrm) {
  if (modrm >> 6 == kRegisterForm || (modrm & 7) != kSibFollows) return Opcode::kNone;  // a SIB byte is demanded
  if (vex.prefix == kF2 || vex.prefix == k66) return Opcode::kTileLoad;
  return vex.prefix == kF3 ? Opcode::kTileStore : Opcode::kNone;
}

Opcode dot_opcode(const Vex& vex, uint8_t byte, const Instruction& operand) {
  if (operand.in_memory) return Opcode::kNone;
  if (byte == 0x5C) return vex.prefix == kF3 ? Opcode::kTdpbf16ps : Opcode::kNone;
  constexpr Opcode kByPrefix[] = {Opcode::kTdpbuud, Opcode::kTdpbusd, Opcode::kTdpbsud, Opcode::kTdpbssd};
  return kByPrefix[vex.prefix];
}

Opcode tile_opcode(const Vex& vex, uint8_t byte, uint8_t modrm, const Instruction& operand) {
  if (vex.l || vex.w || operand.reg > 7) return Opcode::kNone;
  if (byte == 0x5C || byte == 0x5E) {
    const bool tiles_exist = operand.rm <= 7 && vex.second <= 7;
    const bool distinct = operand.reg != operand.rm && operand.rm != vex.second && vex.second != operand.reg;
    return tiles_exist && distinct ? dot_opcode(vex, byte, operand) : Opcode::kNone;
  }
  if (vex.second != 0) return Opcode::kNone;  // an unused vvvv must be 1111b
  return byte == 0x49 ? configuration_opcode(vex, modrm, operand) : byte == 0x4B ? move_opcode(vex, modrm) : Opcode::kNone;
}

Opcode vector_opcode(const Vex& vex, uint8_t byte) {
  if (vex.w || vex.prefix != k66) return Opcode::kNone;
  constexpr Opcode kByOpcode[] = {Opcode::kVpdpbusd, Opcode::kVpdpbusds, Opcode::kVpdpwssd, Opcode::kVpdpwssds};
  return kByOpcode[byte - 0x50];
}

}  // namespace

Instruction decode(const uint8_t* code) {
  Instruction out;
  if (code[0] != kVex3 || (code[1] & 0x1F) != kMap0F38) return out;
  const uint8_t byte = code[3];
  const bool vector = byte >= 0x50 && byte <= 0x53;
  if (!vector && byte != 0x49 && byte != 0x4B && byte != 0x5C && byte != 0x5E) return out;
  const Vex vex = read_vex(code);
  out.length = static_cast<uint8_t>(4 + read_operand(code + 4, vex, out));
  out.second = vex.second;
  out.wide = vex.l;
  out.opcode = vector ? vector_opcode(vex, byte) : tile_opcode(vex, byte, code[4], out);
  return out;
}

bool is_tile_instruction(Opcode opcode) { return opcode >= Opcode::kLdTileCfg && opcode <= Opcode::kTdpbf16ps; }

}  // namespace okl::amx_model
