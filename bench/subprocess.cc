// SPDX-License-Identifier: Apache-2.0
#include "bench/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/interrupt.h"

extern char** environ;

namespace omnibench {
namespace {

using Seconds = std::chrono::duration<double>;

/// A process group of its own, so that what the command starts can be ended with it.
pid_t spawn_shell(const std::string& command, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  if (input >= 0) {
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<std::string> words = {"sh", "-c", command};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = -1;
  const Uninterrupted until_noted;
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error(fmt::format("cannot start \"{}\": {}", command, std::strerror(error)));
  if (!note_group(pid)) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    throw std::runtime_error(fmt::format("cannot start \"{}\": too many commands run already", command));
  }
  return pid;
}

bool has_ended(pid_t pid, int flags) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | flags) != 0) {
    if (errno != EINTR) return true;
  }
  return info.si_pid == pid;
}

/// Kills what is left of the group and takes the status. The leader is reaped last: until then the number of the group is ours.
int reap(pid_t pid) {
  const Uninterrupted until_forgotten;
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  forget_group(pid);
  return status;
}

std::string describe(int status) {
  if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return "ended";
}

}  // namespace

Subprocess::Subprocess(const std::string& command) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error(std::strerror(errno));
  descriptor_ = ends[0];
  try {
    pid_ = spawn_shell(command, ends[1], ends[1]);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
}

Subprocess::~Subprocess() {
  close(descriptor_);
  if (pid_ < 0) return;
  for (int i = 0; i < 200 && !has_ended(pid_, WNOHANG); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  reap(pid_);
}

void Subprocess::kill() const {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void Subprocess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = send(descriptor_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::runtime_error("the worker " + how_it_ended());
    done += static_cast<size_t>(n);
  }
}

std::string Subprocess::read_line(double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + Seconds(seconds);
  for (size_t searched = 0;;) {
    const size_t end = buffer_.find('\n', searched);
    searched = buffer_.size();
    if (std::min(end, searched) > kLongestLine) {
      throw std::runtime_error(fmt::format("the worker's answer is longer than {} bytes", kLongestLine));
    }
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd event{descriptor_, POLLIN, 0};
    const int ready = left > 0 ? poll(&event, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) throw std::runtime_error(fmt::format("the worker did not answer within {} s", seconds));
    std::array<char, 65536> bytes;
    const ssize_t n = read(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::runtime_error("the worker " + how_it_ended());
    buffer_.append(bytes.data(), static_cast<size_t>(n));
  }
}

std::string Subprocess::how_it_ended() {
  for (int i = 0; i < 100 && pid_ > 0; ++i) {
    if (has_ended(pid_, WNOHANG)) return describe(reap(std::exchange(pid_, -1)));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "closed its output";
}

void run_command(const std::string& command) {
  const pid_t pid = spawn_shell(command, -1, -1);
  has_ended(pid, 0);
  const int status = reap(pid);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error(fmt::format("\"{}\" {}", command, describe(status)));
}

}  // namespace omnibench
