// SPDX-License-Identifier: Apache-2.0
// Test support: seccomp policies on executable memory, entered in a child process.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <vector>

namespace okl::test {

enum class Policy {
  kKillWriteExec,     // mmap or mprotect with PROT_WRITE | PROT_EXEC kills
  kDenyMprotectExec,  // the same, and mprotect with PROT_EXEC gives EACCES
  kDenyAnyExec        // the same, and mmap with PROT_EXEC gives EACCES
};

inline bool enter_policy(Policy policy) {
  const auto load = [](size_t offset) { return sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); };
  const auto skip_unless_equal = [](uint32_t value, uint8_t skip) {
    return sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
  };
  const auto answer = [](uint32_t value) { return sock_filter(BPF_STMT(BPF_RET | BPF_K, value)); };
  std::vector<sock_filter> filter;
  for (const long call : {SYS_mmap, SYS_mprotect}) {
    const bool deny_exec = policy == Policy::kDenyAnyExec || (policy == Policy::kDenyMprotectExec && call == SYS_mprotect);
    std::vector<sock_filter> body = {
        load(offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)),  // prot is the third argument of both
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
        skip_unless_equal(PROT_WRITE | PROT_EXEC, 1),
        answer(SECCOMP_RET_KILL_PROCESS),
    };
    if (deny_exec) {
      body.push_back(skip_unless_equal(PROT_EXEC, 1));
      body.push_back(answer(SECCOMP_RET_ERRNO | EACCES));
    }
    body.push_back(answer(SECCOMP_RET_ALLOW));
    filter.push_back(load(offsetof(seccomp_data, nr)));
    filter.push_back(skip_unless_equal(static_cast<uint32_t>(call), static_cast<uint8_t>(body.size())));
    filter.insert(filter.end(), body.begin(), body.end());
  }
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kNoSandbox = 77;  // what a child returns when the machine lets it install no filter

// The wait status of a child that runs `body` and exits with its result.
inline int status_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace okl::test
