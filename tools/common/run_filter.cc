// SPDX-License-Identifier: Apache-2.0
#include "tools/common/run_filter.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

extern char** environ;

namespace omni_tools {
namespace {

/// Sends `input` and collects what comes back on one socket; poll, because both sides may fill their buffers.
std::string exchange(int descriptor, const std::string& input) {
  std::string output;
  size_t sent = 0;
  for (;;) {
    pollfd event{descriptor, static_cast<short>(POLLIN | (sent < input.size() ? POLLOUT : 0)), 0};
    if (poll(&event, 1, 20000) <= 0) return "";
    if ((event.revents & POLLOUT) != 0) {
      const ssize_t n = send(descriptor, input.data() + sent, input.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EINTR && errno != EAGAIN) return "";
      sent += n > 0 ? static_cast<size_t>(n) : 0;
      if (sent == input.size()) shutdown(descriptor, SHUT_WR);
    }
    if ((event.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      std::array<char, 65536> buffer;
      const ssize_t n = read(descriptor, buffer.data(), buffer.size());
      if (n == 0) return output;
      if (n < 0 && errno != EINTR) return "";
      if (n > 0) output.append(buffer.data(), static_cast<size_t>(n));
    }
  }
}

}  // namespace

std::string run_filter(const char* program, const std::string& input) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = program;
  std::array<char*, 2> arguments = {name.data(), nullptr};
  pid_t child = -1;
  const int spawned = posix_spawnp(&child, program, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  int status = -1;
  if (spawned == 0) {
    output = exchange(ends[0], input);
    close(ends[0]);
    if (output.empty()) kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  } else {
    close(ends[0]);
  }
  return status == 0 ? output : "";
}

std::string gnuplot_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace omni_tools
