// SPDX-License-Identifier: Apache-2.0
#include "bench/parking.h"

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace omnibench {
namespace {

constexpr auto kInterval = std::chrono::microseconds(300);

/// Reads a small /proc file; empty when the thread is gone.
std::string read_file(const std::string& path) {
  std::string text;
  if (FILE* file = std::fopen(path.c_str(), "r")) {
    char buffer[1024];
    const size_t n = std::fread(buffer, 1, sizeof buffer, file);
    text.assign(buffer, n);
    std::fclose(file);
  }
  return text;
}

struct ThreadUse {
  bool running = false;
  unsigned long long used = 0;  // schedstat nanoseconds, or stat clock ticks where there is no schedstat
};

ThreadUse look(const std::string& task) {
  ThreadUse use;
  const std::string stat = read_file(task + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return use;
  use.running = stat[name_end + 2] == 'R';
  const std::string schedstat = read_file(task + "/schedstat");
  if (!schedstat.empty()) {
    use.used = std::strtoull(schedstat.c_str(), nullptr, 10);
    return use;
  }
  // state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime
  unsigned long long user = 0;
  unsigned long long system = 0;
  std::sscanf(stat.c_str() + name_end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
  use.used = user + system;
  return use;
}

void collect(pid_t process, pid_t except, std::map<pid_t, ThreadUse>& out) {
  const std::string directory = "/proc/" + std::to_string(process) + "/task";
  DIR* tasks = opendir(directory.c_str());
  if (tasks == nullptr) return;
  std::vector<pid_t> children;
  while (const dirent* entry = readdir(tasks)) {
    const pid_t thread = std::atoi(entry->d_name);
    if (thread <= 0 || thread == except) continue;
    const std::string task = directory + "/" + entry->d_name;
    out[thread] = look(task);
    if (process == getpid()) continue;  // our own children are workers: named by the caller
    std::string list = read_file(task + "/children");
    for (char* word = std::strtok(list.data(), " \n"); word != nullptr; word = std::strtok(nullptr, " \n")) {
      children.push_back(std::atoi(word));
    }
  }
  closedir(tasks);
  for (const pid_t child : children) collect(child, except, out);
}

std::map<pid_t, ThreadUse> look_at_all(const std::vector<pid_t>& others) {
  std::map<pid_t, ThreadUse> all;
  const pid_t self = gettid();
  collect(getpid(), self, all);
  for (const pid_t process : others) collect(process, self, all);
  return all;
}

bool rests(const std::map<pid_t, ThreadUse>& before, const std::map<pid_t, ThreadUse>& after) {
  for (const auto& [thread, use] : after) {
    const auto earlier = before.find(thread);
    if (use.running || earlier == before.end() || earlier->second.running || earlier->second.used != use.used) return false;
  }
  return true;
}

}  // namespace

bool wait_until_parked(const std::vector<pid_t>& others, int limit_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::map<pid_t, ThreadUse> before = look_at_all(others);
  for (;;) {
    std::this_thread::sleep_for(kInterval);
    std::map<pid_t, ThreadUse> after = look_at_all(others);
    if (rests(before, after)) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    before = std::move(after);
  }
}

}  // namespace omnibench
