// SPDX-License-Identifier: Apache-2.0
// Test support: small functions of machine code, written in place.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "jit/memory/executable_memory.h"

namespace okl::test {

struct Assembler : Xbyak::CodeGenerator {
  void marker() { ud2(); }  // the model runs the next instruction on every processor
};

template <typename Emit>
std::vector<uint8_t> bytes_of(const Emit& emit) {
  Assembler code;
  emit(code);
  return {code.getCode(), code.getCode() + code.getSize()};
}

// A function of up to three pointers in rdi, rsi and rdx; `emit` writes the body without the return.
class Function {
 public:
  template <typename Emit>
  explicit Function(const Emit& emit) {
    const std::vector<uint8_t> bytes = bytes_of([&](Assembler& code) {
      emit(code);
      code.ret();
    });
    entry_ = jit::publish(bytes.data(), bytes.size(), "amx_model_test");
    if (entry_ == nullptr) throw std::runtime_error("executable memory is refused");
  }
  void operator()(const void* first = nullptr, void* second = nullptr, void* third = nullptr) const {
    reinterpret_cast<void (*)(const void*, void*, void*)>(const_cast<void*>(entry_))(first, second, third);
  }
  uintptr_t entry() const { return reinterpret_cast<uintptr_t>(entry_); }

 private:
  const void* entry_;
};

}  // namespace okl::test
