// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_SUBPROCESS_H
#define OMNI_BENCH_SUBPROCESS_H

#include <sys/types.h>

#include <string>

namespace omnibench {

/// Of an answer, in bytes without its end. Those of our workers have less than 300; without a bound a worker fills the memory.
inline constexpr size_t kLongestLine = size_t{1} << 20;

/// A shell command with both ends of its standard input and output; its standard error is ours. Failures throw.
class Subprocess {
 public:
  explicit Subprocess(const std::string& command);
  /// Closes the pipe and waits 2 s for the process to leave by itself; then what is left of its process group is killed.
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;
  void write_line(const std::string& line);
  /// The next line without its end. Throws after `seconds`, beyond kLongestLine or when the process
  /// has ended, saying how.
  std::string read_line(double seconds);
  /// Ends it and its process group at once.
  void kill() const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[nodiscard]] std::string how_it_ended();

  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::string buffer_;
};

/// Runs a shell command to its end, its output dropped. Throws unless it ends with status 0.
void run_command(const std::string& command);

}  // namespace omnibench
#endif
