// SPDX-License-Identifier: Apache-2.0
#include "jit/amx_model/emulator.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "jit/amx_model/instruction.h"
#include "jit/amx_model/vector_dot.h"
#include "jit/amx_model/vector_frame.h"

namespace okl::amx_model {
namespace {

constinit thread_local Tiles tiles;
constinit thread_local Counts counts;
struct sigaction previous_action;  // of SIGILL

// gregs of the register numbers that instructions use.
constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

class Machine {
 public:
  explicit Machine(ucontext_t* context) : gregs_(context->uc_mcontext.gregs), fpregs_(context->uc_mcontext.fpregs) {}

  const uint8_t* pc() const { return reinterpret_cast<const uint8_t*>(gregs_[REG_RIP]); }

  // Runs one instruction and moves the instruction pointer behind it, unless it faults.
  Fault execute(const Instruction& instruction, int skipped) {
    next_ = static_cast<uint64_t>(gregs_[REG_RIP]) + static_cast<uint64_t>(skipped) + instruction.length;
    const Fault fault = is_tile_instruction(instruction.opcode) ? execute_on_tiles(instruction) : execute_on_vectors(instruction);
    if (fault == Fault::kNone) gregs_[REG_RIP] = static_cast<greg_t>(next_);
    return fault;
  }

 private:
  uint64_t reg(uint8_t number) const { return static_cast<uint64_t>(gregs_[kGregs[number]]); }

  uint64_t base_address(const Instruction& instruction) const {
    const auto displacement = static_cast<uint64_t>(static_cast<int64_t>(instruction.displacement));
    if (instruction.base == Instruction::kNoRegister) return displacement;
    return displacement + (instruction.base == Instruction::kRip ? next_ : reg(instruction.base));
  }
  uint64_t index_value(const Instruction& instruction) const {
    return instruction.index == Instruction::kNoRegister ? 0 : reg(instruction.index) << instruction.scale_shift;
  }
  uint8_t* address(const Instruction& instruction) const {
    return reinterpret_cast<uint8_t*>(base_address(instruction) + index_value(instruction));
  }

  Fault execute_on_tiles(const Instruction& i) {
    // The index register of a tile's operand is its stride.
    auto* const first_row = reinterpret_cast<uint8_t*>(base_address(i));
    const auto stride = static_cast<int64_t>(index_value(i));
    switch (i.opcode) {
      case Opcode::kLdTileCfg:
        return tiles.configure(address(i));
      case Opcode::kStTileCfg:
        tiles.store_configuration(address(i));
        return Fault::kNone;
      case Opcode::kTileRelease:
        tiles.release();
        return Fault::kNone;
      case Opcode::kTileZero:
        return tiles.zero(i.reg);
      case Opcode::kTileLoad:
        return tiles.load(i.reg, first_row, stride);
      case Opcode::kTileStore:
        return tiles.store(i.reg, first_row, stride);
      case Opcode::kTdpbf16ps:
        return tiles.dot_bf16(i.reg, i.rm, i.second);
      default: {
        const bool a_signed = i.opcode == Opcode::kTdpbssd || i.opcode == Opcode::kTdpbsud;
        const bool b_signed = i.opcode == Opcode::kTdpbssd || i.opcode == Opcode::kTdpbusd;
        return tiles.dot_int8(i.reg, i.rm, i.second, a_signed, b_signed);
      }
    }
  }

  Fault execute_on_vectors(const Instruction& i) {
    if (fpregs_ == nullptr) return Fault::kUndefined;
    VectorFrame frame(fpregs_);
    if (!frame.has_ymm()) return Fault::kUndefined;
    const int bytes = i.wide ? 32 : 16;
    VectorBytes sum = frame.read(i.reg), right{};
    if (i.in_memory) {
      std::memcpy(right.data(), address(i), static_cast<size_t>(bytes));
    } else {
      right = frame.read(i.rm);
    }
    vector_dot(i.opcode, sum, frame.read(i.second), right, bytes);
    frame.write(i.reg, sum, bytes);
    return Fault::kNone;
  }

  greg_t* gregs_;
  void* fpregs_;
  uint64_t next_ = 0;  // the address behind the instruction
};

// A signal that is pending and blocked here arrives when the handler returns, in the context that was interrupted.
void send_protection_fault() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGSEGV);
  constexpr size_t kKernelSetBytes = 8;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, nullptr, kKernelSetBytes);
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_signo = SIGSEGV;
  info.si_code = SI_KERNEL;
  syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &info);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    struct sigaction fatal = {};  // the instruction runs again, and now its #UD kills: nobody can ignore it
    fatal.sa_handler = SIG_DFL;
    sigaction(SIGILL, &fatal, nullptr);
  }
}

int marker_bytes(const uint8_t* code) { return code[0] == 0x0F && code[1] == 0x0B ? 2 : 0; }  // UD2

// qemu-user 7.2 enters handlers with a stack that is 8 bytes off the ABI's alignment.
[[gnu::force_align_arg_pointer]] void handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  ++counts.traps;
  Machine machine(static_cast<ucontext_t*>(context));
  for (bool first = true;; first = false) {
    const int skipped = marker_bytes(machine.pc());
    const Instruction instruction = decode(machine.pc() + skipped);
    Fault fault = Fault::kUndefined;
    if (instruction.opcode != Opcode::kNone) fault = machine.execute(instruction, skipped);
    if (fault == Fault::kNone) {
      ++(is_tile_instruction(instruction.opcode) ? counts.tile_instructions : counts.vector_instructions);
      continue;
    }
    if (fault == Fault::kProtection) {
      ++counts.faults;
      send_protection_fault();
    } else if (first) {  // otherwise it may be code of another kind, or it traps on its own
      ++counts.faults;
      pass_on(signal, info, context);
    }
    break;
  }
  errno = saved_errno;
}

}  // namespace

Emulator::Emulator() {
  VectorFrame::prepare();
  static const int registered = pthread_atfork(nullptr, nullptr, [] { tiles.clear_data(); });
  if (registered != 0) std::abort();
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGILL, &action, &previous_action) != 0) std::abort();
}

Emulator::~Emulator() { sigaction(SIGILL, &previous_action, nullptr); }

Tiles& this_thread_tiles() { return tiles; }
const Counts& this_thread_counts() { return counts; }

}  // namespace okl::amx_model
