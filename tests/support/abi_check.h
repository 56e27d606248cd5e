// SPDX-License-Identifier: Apache-2.0
// Calls a kernel with canaries in every callee-saved register and compares them, MXCSR, the x87 control word and the direction flag
// afterwards.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "jit/memory/executable_memory.h"

namespace okl::test {

class AbiTrampoline : private Xbyak::CodeGenerator {
 public:
  // What changed across the call, or "" when the System V rules were kept.
  template <typename Argument>
  static std::string call(void (*function)(const Argument*), const Argument* argument) {
    static const auto trampoline = reinterpret_cast<uint64_t (*)(const void*, const void*)>(AbiTrampoline().publish_code());
    const uint64_t broken = trampoline(reinterpret_cast<const void*>(function), argument);
    std::string names;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if ((broken >> i & 1) != 0) names += std::string(names.empty() ? "" : " ") + kNames[i];
    }
    return names;
  }

 private:
  static constexpr const char* kNames[] = {"rbx", "rbp", "r12", "r13", "r14", "r15", "mxcsr", "x87", "direction"};

  // rdi = function, rsi = argument; returns a bit for every broken rule.
  AbiTrampoline() {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    sub(rsp, 24);  // keeps rsp a multiple of 16 at the call
    stmxcsr(dword[rsp]);
    fnstcw(word[rsp + 8]);
    mov(rax, rdi);
    mov(rdi, rsi);
    for (size_t i = 0; i < std::size(saved); ++i) mov(saved[i], canary(i));
    Xbyak::CodeGenerator::call(rax);
    xor_(eax, eax);
    for (size_t i = 0; i < std::size(saved); ++i) {
      mov(rcx, canary(i));
      note_difference([&] { cmp(saved[i], rcx); }, i);
    }
    stmxcsr(dword[rsp + 4]);
    mov(ecx, dword[rsp]);  // the low six bits are sticky exception flags, which arithmetic may raise
    or_(ecx, 0x3F);
    or_(dword[rsp + 4], 0x3F);
    note_difference([&] { cmp(ecx, dword[rsp + 4]); }, 6);
    fnstcw(word[rsp + 10]);
    mov(cx, word[rsp + 8]);
    note_difference([&] { cmp(cx, word[rsp + 10]); }, 7);
    pushfq();
    pop(rcx);
    and_(ecx, 1 << 10);
    note_difference([&] { cmp(ecx, 0); }, 8);
    cld();
    add(rsp, 24);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    ret();
  }

  static uint64_t canary(size_t i) { return 0xC0FFEE0000000000 + 0x0101010101 * (i + 1); }
  template <typename Compare>
  void note_difference(const Compare& compare, size_t bit) {
    Xbyak::Label same;
    compare();
    je(same);
    or_(eax, 1U << bit);
    L(same);
  }
  const void* publish_code() {
    const void* entry = jit::publish(getCode(), getSize(), "abi_trampoline");
    if (entry == nullptr) throw std::runtime_error("executable memory is refused");
    return entry;
  }
};

}  // namespace okl::test
