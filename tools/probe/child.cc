// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

namespace probe::testing {
namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (name.rfind("OMNI_", 0) != 0 && !added.contains(name)) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Reads both pipes to their ends; one after the other could block a child that fills the second.
void drain(std::array<int, 2> ends, std::array<std::string*, 2> texts) {
  std::array<pollfd, 2> waits{pollfd{ends[0], POLLIN, 0}, pollfd{ends[1], POLLIN, 0}};
  for (int open = 2; open > 0;) {
    if (poll(waits.data(), waits.size(), -1) < 0) continue;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = ::read(waits[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, static_cast<size_t>(count));
      } else {
        ::close(waits[i].fd);
        waits[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

std::vector<std::string> Outcome::complaints() const {
  std::vector<std::string> lines;
  std::istringstream stream(err);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("qemu-", 0) != 0) lines.push_back(line);
  }
  return lines;
}

Outcome run(const Command& command) {
  Outcome outcome;
  std::vector<std::string> arguments = command.arguments, environment = merged_environment(command.environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return outcome;
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (command.setup && !command.setup()) _exit(kSetupRefused);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  drain({out[0], err[0]}, {&outcome.out, &outcome.err});
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child) {
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  }
  return outcome;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string full = folder + "/" + name;
    if (access(full.c_str(), X_OK) == 0) return full;
  }
  return "";
}

}  // namespace probe::testing
