// SPDX-License-Identifier: Apache-2.0
// The instructions that the software model knows, from their machine code: AMX tiles and the VEX form of AVX-VNNI.
#pragma once

#include <cstdint>

namespace okl::amx_model {

enum class Opcode : uint8_t {
  kNone,  // not one of ours, or an encoding of it that raises #UD whatever the state
  kLdTileCfg,
  kStTileCfg,
  kTileRelease,
  kTileZero,
  kTileLoad,  // TILELOADD and TILELOADDT1, which differ in a cache hint only
  kTileStore,
  kTdpbssd,
  kTdpbsud,
  kTdpbusd,
  kTdpbuud,
  kTdpbf16ps,
  kVpdpbusd,
  kVpdpbusds,
  kVpdpwssd,
  kVpdpwssds
};

struct Instruction {
  static constexpr uint8_t kNoRegister = 0xFF, kRip = 0xFE;

  Opcode opcode = Opcode::kNone;
  uint8_t length = 0;                               // bytes of code
  uint8_t reg = 0;                                  // ModRM.reg: the destination; of TILESTORED the source
  uint8_t second = 0;                               // VEX.vvvv
  uint8_t rm = 0;                                   // ModRM.rm when it is a register
  bool in_memory = false;                           // the r/m operand is in memory
  bool wide = false;                                // VEX.L: YMM instead of XMM
  uint8_t base = kNoRegister, index = kNoRegister;  // numbers as encoded: rax 0, rcx 1, ..., r15 15
  uint8_t scale_shift = 0;                          // log2 of the scale
  int32_t displacement = 0;
};

// Decodes the instruction at `code`, of which it reads no byte that a decoder in hardware would not need. Address size and segment
// prefixes are not modelled: their instructions are kNone. The tile of ModRM.rm is `second` operand a and VEX.vvvv operand b of
// TDP*: TDPBSSD dst=reg, a=rm, b=second.
Instruction decode(const uint8_t* code);

bool is_tile_instruction(Opcode opcode);

}  // namespace okl::amx_model
