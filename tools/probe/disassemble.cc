// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/disassemble.h"

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "tools/probe/choices.h"
#include "tools/probe/failure.h"

namespace probe {
namespace {

omni_kernel_info find(const std::string& name) {
  for (const omni_kernel_info& kernel : list_kernels()) {
    if (name == kernel.name) return kernel;
  }
  throw Failure(Exit::kUsage, fmt::format("--disassemble {}: no kernel of the registry has this name", name));
}

// The text of one instruction, or its first byte as data: a kernel's constants stand behind its last instruction.
std::string decode(const ZydisFormatter& formatter, const uint8_t* code, size_t left, uint64_t address, size_t* length) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  char text[256];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, left, &instruction, operands)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction, operands, instruction.operand_count_visible, text,
                                                    sizeof text, address, nullptr))) {
    *length = 1;
    return fmt::format("db 0x{:02X}", code[0]);
  }
  *length = instruction.length;
  return text;
}

}  // namespace

std::string disassemble(const std::string& kernel, const tools::Shape& shape, std::optional<uint32_t> rows) {
  const omni_kernel_info row = find(kernel);
  if (std::string(row.code) != "jit") {
    throw Failure(Exit::kUsage, fmt::format("--disassemble {}: the kernel is compiled, not generated; use objdump", kernel));
  }
  const omni_numerics numerics = std::string(row.numerics) == "torch" ? OMNI_NUMERICS_TORCH : OMNI_NUMERICS_GROUP;
  const omni_dtype x_type = kernel.find("_f32_") != std::string::npos ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
  const uint32_t m = rows.value_or(std::string(row.op) == "gemm" ? 16 : 1);
  const Plan plan(shape, m, numerics, x_type, kernel.c_str());
  if (plan.info().kernel != kernel && plan.info().kernel_rows != kernel) {
    throw Failure(Exit::kLibrary,
                  fmt::format("--disassemble {}: the plan chose {}: {}", kernel, plan.info().kernel, plan.info().reason));
  }
  size_t needed = 0;
  uint64_t address = 0;
  omni_status status = omni_kernel_code(kernel.c_str(), nullptr, 0, &needed, &address);
  std::vector<uint8_t> code(needed);
  if (status == OMNI_OK) status = omni_kernel_code(kernel.c_str(), code.data(), code.size(), &needed, &address);
  if (status != OMNI_OK) {
    throw Failure(Exit::kLibrary, fmt::format("omni_kernel_code: {}: {}", omni_status_name(status), omni_last_error()));
  }

  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  std::string out = fmt::format("{} for {} ({}x{}), m = {}: {} bytes\n", kernel, shape.name, shape.n, shape.k, m, code.size());
  for (size_t at = 0, length = 0; at < code.size(); at += length) {
    const std::string text = decode(formatter, code.data() + at, code.size() - at, address + at, &length);
    std::string bytes;
    for (size_t i = 0; i < length; ++i) fmt::format_to(std::back_inserter(bytes), "{:02X} ", code[at + i]);
    fmt::format_to(std::back_inserter(out), "{:016x}  {:<34} {}\n", address + at, bytes, text);
  }
  return out;
}

}  // namespace probe
