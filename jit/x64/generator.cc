// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/generator.h"

#include <cstring>

namespace okl::jit {

Generator::Generator(VectorWidth width) : CodeGenerator(kCapacity, memory.get()->bytes), width_(width) {}

CodeBytes Generator::assemble() {
  generate();
  emit_constants();
  ready();
  return CodeBytes(getCode(), getCode() + getSize());
}

void Generator::prologue(int stack_bytes) {
  push(rbp);
  mov(rbp, rsp);
  for (const auto& saved : {rbx, r12, r13, r14, r15}) push(saved);
  sub(rsp, stack_bytes + 8);
  and_(rsp, -64);
#ifndef NDEBUG
  poison_vector_registers();
#endif
}

void Generator::epilogue() {
  vzeroupper();
  lea(rsp, ptr[rbp - 5 * 8]);
  for (const auto& saved : {r15, r14, r13, r12, rbx}) pop(saved);
  pop(rbp);
  ret();
}

// A register that is read before it is written then shows as NaN in every output.
void Generator::poison_vector_registers() {
  if (width_ == VectorWidth::kZmm) {
    for (int i = 0; i < 32; ++i) vpternlogd(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i), 0xFF);
  } else {
    for (int i = 0; i < 16; ++i) vpcmpeqd(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
  }
}

Xbyak::RegRip Generator::pool(const void* data, size_t bytes) {
  for (Constant& known : constants_) {
    if (known.bytes.size() == bytes && std::memcmp(known.bytes.data(), data, bytes) == 0) return rip + known.label;
  }
  const auto* first = static_cast<const uint8_t*>(data);
  constants_.push_back({Xbyak::Label(), std::vector<uint8_t>(first, first + bytes)});
  return rip + constants_.back().label;
}

void Generator::emit_constants() {
  for (Constant& constant : constants_) {
    align(64);
    L(constant.label);
    db(constant.bytes.data(), constant.bytes.size());
  }
}

}  // namespace okl::jit
