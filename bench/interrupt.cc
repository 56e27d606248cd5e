// SPDX-License-Identifier: Apache-2.0
#include "bench/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace omnibench {
namespace {

constexpr size_t kSlots = 64;

struct Folder {
  std::atomic<bool> used{false};
  std::array<char, 4096> path{};
};

// Only lock-free atomics and plain bytes: a signal handler reads them.
std::array<std::atomic<pid_t>, kSlots> groups{};
std::array<Folder, kSlots> folders;
std::atomic<int> deferring{0};
std::atomic<int> deferred{0};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void remove_folder(const char* path) {
  // A killed worker may still be finishing a system call that creates its output: 50 tries, 2 ms apart.
  for (int i = 0; i < 50; ++i) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    for (const char* file : kFolderFiles) unlinkat(folder, file, 0);
    close(folder);
    if (rmdir(path) == 0) return;
    poll(nullptr, 0, 2);
  }
}

void handle(int number) {
  const int kept = errno;
  deferred = number;
  if (deferring > 0) {  // ~Uninterrupted raises it again
    errno = kept;
    return;
  }
  for (const std::atomic<pid_t>& group : groups) {
    const pid_t noted = group;
    if (noted > 0) kill(-noted, SIGKILL);
  }
  for (const Folder& folder : folders) {
    if (folder.used) remove_folder(folder.path.data());
  }
  std::signal(number, SIG_DFL);
  raise(number);  // blocked until the handler returns: the parent sees which signal it was
  errno = kept;
}

}  // namespace

void clean_up_when_interrupted() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int other : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&action.sa_mask, other);
    sigaction(number, &action, nullptr);
  }
}

Uninterrupted::Uninterrupted() { ++deferring; }

Uninterrupted::~Uninterrupted() {
  // The handler writes `deferred` before it reads `deferring`, here it is the other way round: one of the two sees the other.
  if (--deferring == 0 && deferred != 0) raise(deferred);
}

bool note_group(pid_t group) {
  for (std::atomic<pid_t>& slot : groups) {
    pid_t empty = 0;
    if (slot.compare_exchange_strong(empty, group)) return true;
  }
  return false;
}

void forget_group(pid_t group) {
  for (std::atomic<pid_t>& slot : groups) {
    pid_t expected = group;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

bool note_folder(const std::string& path) {
  for (Folder& slot : folders) {
    if (slot.used || path.size() >= slot.path.size()) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.used = true;
    return true;
  }
  return false;
}

void forget_folder(const std::string& path) {
  for (Folder& slot : folders) {
    if (slot.used && path == slot.path.data()) slot.used = false;
  }
}

}  // namespace omnibench
