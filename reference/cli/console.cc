// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "reference/cli/failure.h"

namespace ref::cli {
namespace {

// More than any prompt or text that a context of a million tokens could take.
constexpr size_t kMostInput = size_t{256} << 20;

std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free);

void handle(int number) {
  if (signal_number.exchange(number) == 0) return;
  std::signal(number, SIG_DFL);
  raise(number);
}

// errno of the first failure, 0 when all was written.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

}  // namespace

void listen_for_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  action.sa_handler = handle;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction inherited {};
    if (sigaction(number, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN) continue;  // nohup, background jobs
    sigaction(number, &action, nullptr);  // without SA_RESTART: a read of stdin ends, too
  }
}

int received_signal() { return signal_number; }

bool write_out(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) return false;
  if (error != 0) throw Failure(Exit::kOutput, fmt::format("stdout: cannot write ({})", std::strerror(error)));
  return true;
}

void note(const std::string& line) { write_all(STDERR_FILENO, line + "\n"); }

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (shown_ >= 0) write_all(STDERR_FILENO, "\r\x1b[K");
}

void ProgressLine::show(uint64_t done, uint64_t total) {
  if (interrupted()) throw Interrupted();
  if (!terminal_ || total == 0) return;
  const int percent = static_cast<int>(static_cast<double>(done) * 100 / static_cast<double>(total));
  if (percent == shown_) return;
  shown_ = percent;
  write_all(STDERR_FILENO, fmt::format("\r{} {} %", what_, percent));
}

std::string read_input(const std::string& flag, const std::string& path) {
  const std::string name = path == "-" ? "stdin" : fmt::format("{} {}", flag, path);
  const int descriptor = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto fail = [&](const std::string& why) {
    if (descriptor > STDIN_FILENO) ::close(descriptor);
    throw Failure(Exit::kInput, fmt::format("{}: {}", name, why));
  };
  if (descriptor < 0) fail(fmt::format("cannot be opened ({})", std::strerror(errno)));
  std::string text;
  for (char buffer[65536];;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count == 0) break;
    if (count < 0 && interrupted()) {
      if (descriptor > STDIN_FILENO) ::close(descriptor);
      throw Interrupted();
    }
    if (count < 0 && errno != EINTR) fail(fmt::format("cannot be read ({})", std::strerror(errno)));
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMostInput) fail(fmt::format("is longer than {} bytes", kMostInput));
  }
  if (descriptor > STDIN_FILENO) ::close(descriptor);
  return text;
}

void write_file(const std::string& flag, const std::string& path, std::string_view bytes) {
  const auto fail = [&](int error) {
    throw Failure(Exit::kOutput, fmt::format("{} {}: cannot be written ({})", flag, path, std::strerror(error)));
  };
  struct stat existing {};
  // rename() would put a file in the place of a device or a pipe: as root, of /dev/null itself.
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) fail(S_ISDIR(existing.st_mode) ? EISDIR : EINVAL);
  const std::string aside = fmt::format("{}.part{}", path, ::getpid());
  const int descriptor = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(errno);
  int error = write_all(descriptor, bytes);
  if (error == 0 && ::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(aside.c_str());
  fail(error);
}

}  // namespace ref::cli
