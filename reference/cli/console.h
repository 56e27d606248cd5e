// SPDX-License-Identifier: Apache-2.0
// What a run shows and hears: text on stdout, notes and progress on stderr, signals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ref::cli {

// From here on SIGINT and SIGTERM ask the run to end (a second one ends the process), and a closed pipe is an error to be seen.
void listen_for_signals();
// The signal that asked, 0 when none did.
int received_signal();
inline bool interrupted() { return received_signal() != 0; }

// Writes all of it to stdout at once. False when nobody reads it any more; throws Failure when it cannot be written.
bool write_out(std::string_view text);
// A line on stderr.
void note(const std::string& line);

// A line on a terminal's stderr that tells how far something is, or nothing when stderr is none. Throws Interrupted when a signal
// came.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(uint64_t done, uint64_t total);

 private:
  std::string what_;
  bool terminal_;
  int shown_ = -1;
};

// The whole of a file, or of stdin when `path` is "-". Throws Failure naming `flag`.
std::string read_input(const std::string& flag, const std::string& path);
// Writes a file aside and renames it. Throws Failure naming `flag`.
void write_file(const std::string& flag, const std::string& path, std::string_view bytes);

}  // namespace ref::cli
