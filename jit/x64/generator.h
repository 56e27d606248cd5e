// SPDX-License-Identifier: Apache-2.0
// What every x86-64 generator shares: plain memory to emit into, the SysV frame, NaN poison in debug builds, and a constant pool
// behind the code so that the result is position independent.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "jit/cache/code_cache.h"

namespace okl::jit {

namespace internal {

// Base-from-member: the buffer must exist before Xbyak::CodeGenerator is constructed on it.
struct EmitBuffer {
  static constexpr size_t kCapacity = size_t{256} << 10;
  static constexpr size_t kAlignment = 64;  // Xbyak aligns to addresses, publish() aligns entries: the two must agree
  struct alignas(kAlignment) Line {
    uint8_t bytes[kAlignment];
  };
  std::unique_ptr<Line[]> memory{new Line[kCapacity / kAlignment]};
};

}  // namespace internal

// Which registers a kernel may touch: decides what the debug poison fills.
enum class VectorWidth : uint8_t { kYmm, kZmm };

class Generator : private internal::EmitBuffer, protected Xbyak::CodeGenerator {
 public:
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  ~Generator() override = default;

  // Emits once and returns the bytes. Throws Xbyak::Error; find_or_generate() reports that as a failed generation.
  CodeBytes assemble();

 protected:
  explicit Generator(VectorWidth width);

  virtual void generate() = 0;  // a table of contents

  // Saves the callee-saved registers, aligns the stack to 64 and reserves `stack_bytes` at [rsp]. The argument stays in rdi.
  void prologue(int stack_bytes = 0);
  // vzeroupper (a dirty upper half slows the caller's SSE code), restore, return. MXCSR is never touched.
  void epilogue();

  // RIP-relative operands of constants that are emitted behind the code, 64-byte aligned. Equal contents share one copy.
  Xbyak::RegRip pool(const void* data, size_t bytes);
  template <typename T, size_t count>
  Xbyak::RegRip pool(const std::array<T, count>& values) {
    return pool(values.data(), sizeof values);
  }
  Xbyak::RegRip pool_word(uint32_t word) { return pool(&word, sizeof word); }

 private:
  struct Constant {
    Xbyak::Label label;
    std::vector<uint8_t> bytes;
  };

  void poison_vector_registers();
  void emit_constants();

  VectorWidth width_;
  std::list<Constant> constants_;  // a list: labels must not move
};

}  // namespace okl::jit
