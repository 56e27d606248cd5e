// SPDX-License-Identifier: Apache-2.0
// The model behind real traps: generated code whose tile and vector instructions run in software.
#include "jit/amx_model/emulator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "jit/amx_model/code_for_test.h"
#include "jit/amx_model/tile_config_for_test.h"
#include "kernels/cpu/machine.h"

namespace okl::amx_model {
namespace {

using test::Assembler;
using test::Function;
using test::TileConfig;
using Xbyak::Tmm;
using Xbyak::Ymm;

class TileEmulator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (jit::code_state() == jit::CodeState::kRefused) GTEST_SKIP() << jit::code_state_reason();
    if ((hardware_isa() & OMNI_ISA_AMX_TILE) != 0) GTEST_SKIP() << "this processor executes the instructions itself";
  }
  void TearDown() override { this_thread_tiles().release(); }

  const Emulator emulator_;
};

// sums [m][n] += A [m][4 k4] * B [k4][4 n], by one call with the operands and one configuration behind them.
struct Product {
  TileConfig config;
  uint8_t a[1024], b[1024];
  int32_t sums[256];
};

void emit_product(Assembler& code) {  // rdi = Product
  code.ldtilecfg(code.ptr[code.rdi + offsetof(Product, config)]);
  code.lea(code.rsi, code.ptr[code.rdi + offsetof(Product, a)]);
  code.lea(code.rdx, code.ptr[code.rdi + offsetof(Product, b)]);
  code.lea(code.rcx, code.ptr[code.rdi + offsetof(Product, sums)]);
  code.mov(code.eax, 64);
  code.tileloadd(Tmm(0), code.ptr[code.rcx + code.rax]);
  code.tileloadd(Tmm(1), code.ptr[code.rsi + code.rax]);
  code.tileloaddt1(Tmm(2), code.ptr[code.rdx + code.rax]);
  code.tdpbsud(Tmm(0), Tmm(1), Tmm(2));
  code.tilestored(code.ptr[code.rcx + code.rax], Tmm(0));
  code.tilerelease();
}

Product random_product(int m, int n, int k4, uint32_t seed) {
  Product p{TileConfig::product(m, n, k4), {}, {}, {}};
  std::mt19937 random(seed);
  for (uint8_t& byte : p.a) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : p.b) byte = static_cast<uint8_t>(random());
  for (int32_t& sum : p.sums) sum = static_cast<int32_t>(random() % 1000);
  return p;
}

bool runs_right(const Function& function, int m, int n, int k4, uint32_t seed) {
  const Product before = random_product(m, n, k4, seed);
  Product after = before;
  function(&after);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      int32_t sum = before.sums[16 * row + column];
      for (int k = 0; row < m && column < n && k < 4 * k4; ++k) {
        sum += static_cast<int8_t>(before.a[64 * row + k]) * before.b[64 * (k / 4) + 4 * column + k % 4];
      }
      if (after.sums[16 * row + column] != sum) return false;
    }
  }
  return true;
}

TEST_F(TileEmulator, RunsGeneratedCode) {
  const Function product(emit_product);
  for (const auto& [m, n, k4] : {std::array{16, 16, 16}, {1, 16, 16}, {7, 3, 5}, {16, 1, 1}, {3, 16, 9}}) {
    EXPECT_TRUE(runs_right(product, m, n, k4, static_cast<uint32_t>(m))) << m << " " << n << " " << k4;
  }
  EXPECT_FALSE(this_thread_tiles().configured());
}

TEST_F(TileEmulator, NeighboursRunInOneTrap) {
  const Function product(emit_product);
  const Counts before = this_thread_counts();
  EXPECT_TRUE(runs_right(product, 4, 4, 4, 1));
  EXPECT_EQ(this_thread_counts().traps - before.traps, 2U) << "LDTILECFG, and the six instructions behind the addresses";
  EXPECT_EQ(this_thread_counts().tile_instructions - before.tile_instructions, 7U);
}

// Every tile instruction once, with addresses by high registers, scales and displacements, and relative to the code.
TEST_F(TileEmulator, EveryInstruction) {
  struct Memory {
    TileConfig read_back;
    uint32_t a, b, results[6];
    uint16_t x[2], y[2];
  };
  const TileConfig config = TileConfig::product(1, 1, 1);
  const Function all([&](Assembler& code) {
    Xbyak::Label constant, start;
    code.jmp(start);
    code.align(64);
    code.L(constant);
    code.db(config.bytes(), 64);
    code.L(start);
    code.ldtilecfg(code.ptr[code.rip + constant]);
    code.sttilecfg(code.ptr[code.rdi + offsetof(Memory, read_back)]);
    code.mov(code.r8, code.rdi);
    code.mov(code.r9, 8);
    code.tileloadd(Tmm(1), code.ptr[code.r8 + code.r9 * 4 + offsetof(Memory, a)]);
    code.tileloaddt1(Tmm(2), code.ptr[code.r8 + code.r9 + offsetof(Memory, b)]);
    const auto store = [&](int i) {
      code.tilestored(code.ptr[code.r8 + code.r9 + static_cast<int>(offsetof(Memory, results)) + 4 * i], Tmm(0));
      code.tilezero(Tmm(0));
    };
    code.tdpbssd(Tmm(0), Tmm(1), Tmm(2));
    store(0);
    code.tdpbsud(Tmm(0), Tmm(1), Tmm(2));
    store(1);
    code.tdpbusd(Tmm(0), Tmm(1), Tmm(2));
    store(2);
    code.tdpbuud(Tmm(0), Tmm(1), Tmm(2));
    store(3);
    code.tileloadd(Tmm(1), code.ptr[code.r8 + code.r9 + offsetof(Memory, x)]);
    code.tileloadd(Tmm(2), code.ptr[code.r8 + code.r9 + offsetof(Memory, y)]);
    code.tdpbf16ps(Tmm(0), Tmm(1), Tmm(2));
    store(4);
    store(5);
    code.tilerelease();
  });
  Memory memory{{}, 0x80FF0201, 0x0304FF80, {}, {0x3F80, 0x4000}, {0x4040, 0x4080}};  // x = 1, 2; y = 3, 4
  all(&memory);
  EXPECT_EQ(std::memcmp(&memory.read_back, &config, 64), 0);
  const int a_signed[] = {1, 2, -1, -128}, a_plain[] = {1, 2, 255, 128};
  const int b_signed[] = {-128, -1, 4, 3}, b_plain[] = {128, 255, 4, 3};
  const auto dot = [](const int* a, const int* b) { return static_cast<uint32_t>(std::inner_product(a, a + 4, b, 0)); };
  EXPECT_EQ(memory.results[0], dot(a_signed, b_signed));
  EXPECT_EQ(memory.results[1], dot(a_signed, b_plain));
  EXPECT_EQ(memory.results[2], dot(a_plain, b_signed));
  EXPECT_EQ(memory.results[3], dot(a_plain, b_plain));
  EXPECT_EQ(memory.results[4], 0x41300000U);  // 11
  EXPECT_EQ(memory.results[5], 0U);
}

// The registers that are no operands keep their values across a trap.
TEST_F(TileEmulator, LeavesOtherRegistersAlone) {
  const TileConfig config = TileConfig::product(1, 1, 1);
  const Function function([](Assembler& code) {
    code.vmovups(Ymm(3), code.ptr[code.rsi]);
    code.mov(code.r11, code.rsi);
    code.ldtilecfg(code.ptr[code.rdi]);
    code.tilerelease();
    code.vmovups(code.ptr[code.rdx], Ymm(3));
    code.mov(code.ptr[code.rdx + 32], code.r11);
  });
  uint64_t in[4] = {1, 2, 3, 4}, out[5] = {};
  function(&config, in, out);
  EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
  EXPECT_EQ(out[4], reinterpret_cast<uintptr_t>(in));
}

TEST_F(TileEmulator, ThreadsHaveTheirOwnTiles) {
  const Function product(emit_product), hold([](Assembler&code) {
    code.ldtilecfg(code.ptr[code.rdi]);
    code.mov(code.eax, 64);
    code.tileloadd(Tmm(0), code.ptr[code.rsi + code.rax]);
  });
  const Function look([](Assembler& code) {
    code.mov(code.eax, 64);
    code.tilestored(code.ptr[code.rdi + code.rax], Tmm(0));
  });
  const TileConfig config = TileConfig().tile(0, 16, 64);
  uint32_t mine[256], seen[256] = {};
  std::iota(std::begin(mine), std::end(mine), 1U);
  hold(&config, mine);
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (uint32_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      if (this_thread_tiles().configured()) return;
      for (uint32_t i = 0; i < 40; ++i) {
        right[t] += runs_right(product, 1 + static_cast<int>((t + i) % 16), 16, 1 + static_cast<int>(i % 16), 100 * t + i) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) EXPECT_EQ(count, 40);
  look(seen);
  EXPECT_EQ(std::memcmp(mine, seen, sizeof mine), 0);
}

TEST_F(TileEmulator, ForkedChildHasTheConfigurationAndZeroes) {
  const TileConfig config = TileConfig().tile(0, 1, 4);
  const Function hold([](Assembler& code) {
    code.ldtilecfg(code.ptr[code.rdi]);
    code.mov(code.eax, 64);
    code.tileloadd(Tmm(0), code.ptr[code.rsi + code.rax]);
  });
  const Function look([](Assembler& code) {
    code.mov(code.eax, 64);
    code.tilestored(code.ptr[code.rdi + code.rax], Tmm(0));
  });
  uint32_t word = 5;
  hold(&config, &word);
  const pid_t child = fork();
  if (child == 0) {
    look(&word);
    _exit(word == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  word = 0;
  look(&word);
  EXPECT_EQ(word, 5U);
}

// --- faults: what Linux would send, seen by a handler of the test
// --------------------------------------------------------------------

sigjmp_buf return_point;
int seen_signal, seen_code;
uintptr_t seen_address, seen_pc;

void note_and_leave(int signal, siginfo_t* info, void* context) {
  seen_signal = signal;
  seen_code = info->si_code;
  seen_address = reinterpret_cast<uintptr_t>(info->si_addr);
  seen_pc = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  siglongjmp(return_point, 1);
}

class TileFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (jit::code_state() == jit::CodeState::kRefused) GTEST_SKIP() << jit::code_state_reason();
    if ((hardware_isa() & OMNI_ISA_AMX_TILE) != 0) GTEST_SKIP() << "this processor executes the instructions itself";
    struct sigaction action = {};
    action.sa_sigaction = note_and_leave;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &former_ill_);
    sigaction(SIGSEGV, &action, &former_segv_);
    emulator_.emplace();
  }
  void TearDown() override {
    if (!emulator_) return;
    emulator_.reset();
    sigaction(SIGILL, &former_ill_, nullptr);
    sigaction(SIGSEGV, &former_segv_, nullptr);
    this_thread_tiles().release();
  }
  // The signal that the call ends with, 0 when it returns.
  static int signal_of(const Function& function, const void* argument = nullptr) {
    seen_signal = 0;
    if (sigsetjmp(return_point, 1) == 0) function(argument);
    return seen_signal;
  }

  std::optional<Emulator> emulator_;
  struct sigaction former_ill_ = {}, former_segv_ = {};
};

TEST_F(TileFaults, NoConfigurationIsAnIllegalInstruction) {
  const Function uses[] = {Function([](Assembler& code) { code.tilezero(Tmm(0)); }),
                           Function([](Assembler& code) { code.tileloadd(Tmm(0), code.ptr[code.rdi + code.rdi]); }),
                           Function([](Assembler& code) { code.tilestored(code.ptr[code.rdi + code.rdi], Tmm(0)); }),
                           Function([](Assembler& code) { code.tdpbssd(Tmm(0), Tmm(1), Tmm(2)); }),
                           Function([](Assembler& code) { code.tdpbf16ps(Tmm(0), Tmm(1), Tmm(2)); })};
  uint8_t memory[64] = {};
  for (const Function& use : uses) {
    EXPECT_EQ(signal_of(use, memory), SIGILL);
    EXPECT_EQ(seen_pc, use.entry());
    EXPECT_EQ(seen_address, use.entry());
  }
}

// The pointer stands on the third instruction of a run, whose first two have taken effect.
TEST_F(TileFaults, AFaultInsideARunIsPrecise) {
  const Function function([](Assembler& code) {
    code.ldtilecfg(code.ptr[code.rdi]);
    code.tilezero(Tmm(0));
    code.tilezero(Tmm(7));
  });
  const TileConfig config = TileConfig().tile(0, 1, 4);
  EXPECT_EQ(signal_of(function, &config), SIGILL);
  EXPECT_EQ(seen_pc, function.entry() + 10);
  EXPECT_TRUE(this_thread_tiles().configured());
}

TEST_F(TileFaults, WrongShapesAreIllegalInstructions) {
  const Function function([](Assembler& code) {
    code.ldtilecfg(code.ptr[code.rdi]);
    code.tdpbusd(Tmm(0), Tmm(1), Tmm(2));
  });
  TileConfig config = TileConfig::product(4, 4, 4);
  EXPECT_EQ(signal_of(function, &config), 0);
  config.tile(1, 3, 16);
  EXPECT_EQ(signal_of(function, &config), SIGILL);
  EXPECT_EQ(seen_pc, function.entry() + 5);
}

TEST_F(TileFaults, BadPalettesAreProtectionFaults) {
  const Function function([](Assembler& code) { code.ldtilecfg(code.ptr[code.rdi]); });
  TileConfig config = TileConfig::product(4, 4, 4);
  config.palette = 2;
  EXPECT_EQ(signal_of(function, &config), SIGSEGV);
  EXPECT_EQ(seen_code, SI_KERNEL);
  EXPECT_EQ(seen_address, 0U);
  EXPECT_EQ(seen_pc, function.entry());
  config.palette = 1;
  config.tile(3, 17, 64);
  EXPECT_EQ(signal_of(function, &config), SIGSEGV);
  EXPECT_FALSE(this_thread_tiles().configured());
}

TEST_F(TileFaults, OtherIllegalInstructionsArePassedOn) {
  const Function function([](Assembler& code) { code.ud2(); });
  EXPECT_EQ(signal_of(function), SIGILL);
  EXPECT_EQ(seen_pc, function.entry());
}

TEST(TileFaultsDeathTest, WithoutAHandlerTheFaultKills) {
  if (jit::code_state() == jit::CodeState::kRefused) GTEST_SKIP() << jit::code_state_reason();
  if ((hardware_isa() & OMNI_ISA_AMX_TILE) != 0) GTEST_SKIP() << "this processor executes the instructions itself";
  const Function function([](Assembler& code) { code.tilezero(Tmm(0)); });
  EXPECT_DEATH(
      {
        const Emulator emulator;
        function();
      },
      "");
}

}  // namespace
}  // namespace okl::amx_model
