// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/disassemble.h"

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "tools/probe/choices.h"
#include "tools/probe/failure.h"
#include "tools/probe/generate.h"

namespace probe {
namespace {

omni_kernel_info find(const std::string& name) {
  for (const omni_kernel_info& kernel : list_kernels()) {
    if (name == kernel.name) return kernel;
  }
  throw Failure(Exit::kUsage, fmt::format("--disassemble {}: no kernel of the registry has this name", name));
}

// Writes code as instructions, up to the constants that stand behind it: they begin at the lowest address that an instruction
// reads relative to itself. (LEA reads nothing: its targets are code, places that a kernel jumps back to.)
class Listing {
 public:
  Listing(const std::vector<uint8_t>& code, uint64_t address) : code_(code), address_(address), constants_(code.size()) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter_, ZYDIS_FORMATTER_STYLE_INTEL);
  }

  std::string text() {
    size_t at = 0;
    while (at < constants_) at += instruction(at);
    while (at < code_.size()) at += line(at, std::min<size_t>(8, code_.size() - at), "(constant)");
    return std::move(out_);
  }

 private:
  size_t instruction(size_t at) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[256];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code_.data() + at, code_.size() - at, &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter_, &instruction, operands, instruction.operand_count_visible, text,
                                                      sizeof text, address_ + at, nullptr))) {
      return line(at, 1, "(not an instruction)");
    }
    if (instruction.mnemonic == ZYDIS_MNEMONIC_LEA) return line(at, instruction.length, text);
    for (const ZydisDecodedOperand& operand : std::span(operands, instruction.operand_count_visible)) {
      uint64_t target = 0;
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.base != ZYDIS_REGISTER_RIP) continue;
      if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction, &operand, address_ + at, &target))) continue;
      if (target > address_ + at) constants_ = std::min<size_t>(constants_, target - address_);
    }
    return line(at, instruction.length, text);
  }

  size_t line(size_t at, size_t length, const char* text) {
    std::string bytes;
    for (size_t i = 0; i < length; ++i) fmt::format_to(std::back_inserter(bytes), "{:02X} ", code_[at + i]);
    fmt::format_to(std::back_inserter(out_), "{:016x}  {:<34} {}\n", address_ + at, bytes, text);
    return length;
  }

  const std::vector<uint8_t>& code_;
  uint64_t address_;
  size_t constants_;  // offset of the first constant
  ZydisDecoder decoder_;
  ZydisFormatter formatter_;
  std::string out_;
};

}  // namespace

std::string disassemble(const std::string& kernel, const tools::Shape& shape, std::optional<uint32_t> rows) {
  const omni_kernel_info row = find(kernel);
  if (std::string(row.code) != "jit") {
    throw Failure(Exit::kUsage, fmt::format("--disassemble {}: the kernel is compiled, not generated; use objdump", kernel));
  }
  const bool linear = std::string(row.numerics) != "";
  const uint32_t m = rows.value_or(std::string(row.op) == "gemm" ? 16 : 1);
  generate(row, shape, m);
  size_t needed = 0;
  uint64_t address = 0;
  omni_status status = omni_kernel_code(kernel.c_str(), nullptr, 0, &needed, &address);
  std::vector<uint8_t> code(needed);
  if (status == OMNI_OK) status = omni_kernel_code(kernel.c_str(), code.data(), code.size(), &needed, &address);
  if (status != OMNI_OK) {
    throw Failure(Exit::kLibrary, fmt::format("omni_kernel_code: {}: {}", omni_status_name(status), omni_last_error()));
  }

  const std::string what = linear ? fmt::format(" for {} ({}x{}), m = {}", shape.name, shape.n, shape.k, m) : "";
  return fmt::format("{}{}: {} bytes\n", kernel, what, code.size()) + Listing(code, address).text();
}

}  // namespace probe
