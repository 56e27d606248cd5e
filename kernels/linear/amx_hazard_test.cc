// SPDX-License-Identifier: Apache-2.0
// Tiles are state of a thread that every library on it shares. Whoever left whatever there, an AMX kernel computes the same and
// leaves nothing behind; and where tiles may not be used, the next tier serves with the same bits and says why.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jit/amx_model/code_for_test.h"
#include "jit/amx_model/tile_config_for_test.h"
#include "jit/memory/executable_memory.h"
#include "kernels/cpu/cpu_source.h"
#include "tests/support/exact_case.h"
#include "tests/support/fast_case.h"
#include "tests/support/linear_case.h"
#include "tests/support/linear_run.h"
#include "tests/support/modelled_cpu.h"

namespace okl::test {
namespace {

using Xbyak::Tmm;

bool can_run_tile_kernels() {
  constexpr IsaMask kOthers = (kIsaAmxInt8Tier | kIsaAmxBf16Tier) & ~kIsaAmxBits;
  return (hardware_isa() & kOthers) == kOthers && jit::code_state() != jit::CodeState::kRefused;
}

// A query with the AMX kernel of its class and what it must give.
class Work {
 public:
  virtual ~Work() = default;
  virtual omni_linear_query query() const = 0;
  virtual omni_linear_args args() = 0;
  virtual void clear() = 0;
  virtual bool right() = 0;
};

class ExactWork final : public Work {
 public:
  explicit ExactWork(omni_format weights) : problem_(shape_of(weights), 3), expected_(problem_.expected()) {}
  omni_linear_query query() const override { return problem_.query(); }
  omni_linear_args args() override { return problem_.args(); }
  void clear() override { problem_.clear_y(); }
  bool right() override { return problem_.difference(expected_).empty(); }

 private:
  static ExactShape shape_of(omni_format weights) {
    ExactShape shape;
    shape.weights = weights;
    shape.n = 80;
    shape.k = 96;
    shape.m = 18;
    return shape;
  }
  ExactCase problem_;
  const std::vector<uint32_t> expected_;
};

class FastWork final : public Work {
 public:
  explicit FastWork(omni_format weights) : problem_(shape_of(weights), 3) {}
  omni_linear_query query() const override { return problem_.query(); }
  omni_linear_args args() override { return problem_.args(); }
  void clear() override { problem_.clear_y(); }
  bool right() override { return problem_.first_violation().empty(); }

 private:
  static FastShape shape_of(omni_format weights) {
    FastShape shape;
    shape.weights = weights;
    shape.n = 80;
    shape.k = 96;
    shape.m = 18;
    return shape;
  }
  FastCase problem_;
};

std::vector<std::unique_ptr<Work>> all_work() {
  std::vector<std::unique_ptr<Work>> work;
  work.push_back(std::make_unique<ExactWork>(OMNI_FORMAT_W4S));
  work.push_back(std::make_unique<ExactWork>(OMNI_FORMAT_W8S));
  work.push_back(std::make_unique<FastWork>(OMNI_FORMAT_TG4));
  work.push_back(std::make_unique<FastWork>(OMNI_FORMAT_W16));
  return work;
}

// A plan with its workspace; run() may be called by any thread, one at a time.
class Runner {
 public:
  explicit Runner(Work& work) : work_(work) {
    const omni_linear_query query = work.query();
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
    plan_.reset(plan);
    args_ = work.args();
    workspace_ = make_workspace(*plan_, args_.m, Flush::kBack);
    args_.workspace = workspace_.data();
    args_.workspace_bytes = workspace_.size();
    size_t bytes = 0;
    EXPECT_EQ(omni_scratch_size(plan, args_.m, &bytes), OMNI_OK);
    scratch_ = GuardedBuffer(bytes, Flush::kBack, 64, 0xFF);
    args_.scratch = scratch_.data();
    args_.scratch_bytes = scratch_.size();
    parallel_ = serial_parallel();
    args_.parallel = &parallel_;
  }
  omni_plan_info info() const {
    omni_plan_info info{};
    info.size = sizeof info;
    EXPECT_EQ(omni_plan_get_info(plan_.get(), &info), OMNI_OK);
    return info;
  }
  bool uses_tiles() const { return (info().isa_required & kIsaAmxBits) != 0; }
  bool run() {
    work_.clear();
    return omni_run(plan_.get(), &args_) == OMNI_OK && work_.right();
  }
  // In two portions, with something else on the thread before and between them.
  bool run_around(const std::function<void()>& other) {
    work_.clear();
    other();
    if (omni_prepare(plan_.get(), &args_) != OMNI_OK) return false;
    other();
    if (omni_run_portion(plan_.get(), &args_, 0, 64) != OMNI_OK) return false;
    other();
    return omni_run_portion(plan_.get(), &args_, 64, 80) == OMNI_OK && work_.right();
  }

 private:
  Work& work_;
  PlanPointer plan_;
  omni_linear_args args_{};
  GuardedBuffer workspace_{0}, scratch_{0};
  omni_parallel parallel_{};
};

// Another library's use of tiles.
struct Stranger {
  Function configure{[](Assembler& code) { code.ldtilecfg(code.ptr[code.rdi]); }};
  Function load{[](Assembler& code) {
    code.mov(code.eax, 64);
    code.tileloadd(Tmm(0), code.ptr[code.rdi + code.rax]);
  }};
  Function store{[](Assembler& code) {
    code.mov(code.eax, 64);
    code.tilestored(code.ptr[code.rdi + code.rax], Tmm(0));
  }};
  Function release{[](Assembler& code) { code.tilerelease(); }};
  Function read_configuration{[](Assembler& code) { code.sttilecfg(code.ptr[code.rdi]); }};

  bool sees_no_configuration() const {
    TileConfig config;
    read_configuration(&config);
    return config.palette == 0;
  }
};

class AmxHazard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_run_tile_kernels()) GTEST_SKIP() << "not run: unpacking and folding need AVX-512 with VBMI, and executable memory";
  }
};

TEST_F(AmxHazard, AnyConfigurationMayStandOnTheThread) {
  const ModelledCpu cpu;
  const Stranger stranger;
  TileConfig tiny, full, interrupted;
  for (int tile = 0; tile < 8; ++tile) {
    tiny.tile(tile, 1, 4);
    full.tile(tile, 16, 64);
    interrupted.tile(tile, 16, 64);
  }
  interrupted.start_row = 7;
  std::vector<uint32_t> garbage(256, 0x7FC00000);
  for (const auto& work : all_work()) {
    Runner runner(*work);
    ASSERT_TRUE(runner.uses_tiles()) << runner.info().kernel_rows;
    EXPECT_TRUE(runner.run_around([&] { stranger.configure(&tiny); }));
    EXPECT_TRUE(runner.run_around([&] {
      stranger.configure(&full);
      stranger.load(garbage.data());
    }));
    EXPECT_TRUE(runner.run_around([&] { stranger.configure(&interrupted); }));
    EXPECT_TRUE(runner.run_around([&] { stranger.release(); }));
    EXPECT_TRUE(stranger.sees_no_configuration()) << "a kernel left its tiles configured";
  }
}

TEST_F(AmxHazard, KernelsOfAllClassesFollowEachOther) {
  const ModelledCpu cpu;
  const auto work = all_work();
  std::vector<std::unique_ptr<Runner>> runners;
  for (const auto& item : work) runners.push_back(std::make_unique<Runner>(*item));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < runners.size(); ++i) EXPECT_TRUE(runners[(i * 3 + static_cast<size_t>(round)) % runners.size()]->run());
  }
}

TEST_F(AmxHazard, NewThreadsHaveNoConfiguration) {
  const ModelledCpu cpu;
  for (const auto& work : all_work()) {
    Runner runner(*work);
    for (int i = 0; i < 3; ++i) {
      bool right = false;
      std::thread([&] { right = runner.run(); }).join();
      EXPECT_TRUE(right);
    }
  }
}

// Linux hands a child the configuration of its parent and tiles of zeros.
TEST_F(AmxHazard, AfterFork) {
  const ModelledCpu cpu;
  const Stranger stranger;
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.tile(tile, 2, 8);
  for (const auto& work : all_work()) {
    Runner runner(*work);
    EXPECT_TRUE(runner.run());
    stranger.configure(&config);
    const pid_t child = fork();
    if (child == 0) _exit(runner.run() && stranger.sees_no_configuration() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(runner.run());
  }
}

// A signal stack of the least size is no business of the kernels; that Linux then refuses tiles is a case of the next test.
TEST_F(AmxHazard, SmallSignalStack) {
  const ModelledCpu cpu;
  std::vector<uint8_t> memory(size_t{16} << 10);
  stack_t stack{}, former{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ASSERT_EQ(sigaltstack(&stack, &former), 0);
  for (const auto& work : all_work()) {
    Runner runner(*work);
    EXPECT_TRUE(runner.run());
  }
  ASSERT_EQ(sigaltstack(&former, nullptr), 0);
}

struct Trace {
  Trace() {
    omni_set_trace([](void* context, const char* line) { *static_cast<std::string*>(context) += std::string(line) + "\n"; },
                   &lines);
  }
  ~Trace() { omni_set_trace(nullptr, nullptr); }
  std::string lines;
};

// AC-030: whatever the reason, the best kernel without tiles serves with the same bits, now and from then on.
TEST_F(AmxHazard, RefusedPermissionLeavesTheNextTier) {
  const std::pair<Permission, const char*> cases[] = {{Permission::kInvalid, "EINVAL"},
                                                      {Permission::kForbidden, "EPERM"},
                                                      {Permission::kSmallStacks, "alternate signal stack"},
                                                      {Permission::kMaskedCpuid, "no AMX"}};
  for (const auto& [permission, word] : cases) {
    const ModelledCpu cpu(permission);
    for (const auto& work : all_work()) {
      const Trace trace;
      Runner runner(*work);
      EXPECT_FALSE(runner.uses_tiles()) << runner.info().kernel_rows;
      EXPECT_NE(std::string(runner.info().reason_rows).find(word), std::string::npos) << runner.info().reason_rows;
      EXPECT_NE(trace.lines.find(word), std::string::npos) << trace.lines;
      EXPECT_TRUE(runner.run());
    }
  }
}

// arch_prctl answers as a filter says, with a processor in front of it that claims AMX.
CpuSource processor_that_claims_amx() {
  CpuSource source = hardware_cpu();
  source.cpuid = [](const void*, uint32_t leaf, uint32_t subleaf) {
    CpuidRegisters r = hardware_cpu().cpuid(nullptr, leaf, subleaf);
    if (leaf == 7 && subleaf == 0) r.edx |= 1U << 22 | 1U << 24 | 1U << 25;
    return r;
  };
  source.xgetbv = [](const void*) { return hardware_cpu().xgetbv(nullptr) | 0x60000; };
  return source;
}

// The codes of tile permission only: a program's start needs others.
bool deny_tile_codes(int error) {
  constexpr uint32_t kGetSupported = 0x1021, kRequest = 0x1023;
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 4),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                          BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kGetSupported, 0, 2),
                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kRequest, 1, 0),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(AmxHazard, AFilterOnArchPrctl) {
  constexpr int kNoFilter = 77;
  for (const auto& [error, word] : {std::pair(EINVAL, "EINVAL"), std::pair(EPERM, "EPERM")}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!deny_tile_codes(error)) _exit(kNoFilter);
      const CpuSource source = processor_that_claims_amx();
      set_amx_source(&source);
      set_modelled_isa(kIsaAmxBits);  // nothing models the tiles here: whoever used one would die
      bool right = true;
      for (const auto& work : all_work()) {
        Runner runner(*work);
        right =
            right && !runner.uses_tiles() && std::string(runner.info().reason_rows).find(word) != std::string::npos && runner.run();
      }
      omni_machine machine{};
      machine.size = sizeof machine;
      right = right && omni_get_machine(&machine) == OMNI_OK && (machine.isa & kIsaAmxBits) == 0 &&
              std::string(machine.amx_reason).find(word) != std::string::npos;
      _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this machine lets a process install no filter";
    EXPECT_EQ(status, 0) << word;
  }
}

// The programs start and end as ever under such a filter.
TEST_F(AmxHazard, TheProbeUnderAFilterOnArchPrctl) {
#ifndef OMNI_PROBE
  GTEST_SKIP() << "omni-probe is not built";
#else
  for (const int error : {EINVAL, EPERM}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!deny_tile_codes(error) || freopen("/dev/null", "w", stdout) == nullptr) _exit(77);
      execl(OMNI_PROBE, OMNI_PROBE, "--no-bandwidth", static_cast<char*>(nullptr));
      _exit(78);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "this machine lets a process install no filter";
    EXPECT_EQ(status, 0) << error;
  }
#endif
}

}  // namespace
}  // namespace okl::test
