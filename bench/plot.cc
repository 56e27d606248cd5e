// SPDX-License-Identifier: Apache-2.0
#include "bench/plot.h"

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
#include <csignal>
#include <vector>

#include "bench/report.h"

extern char** environ;

namespace omnibench {
namespace {

using nlohmann::json;

/// For a double-quoted gnuplot string in which nothing is to be interpreted ("noenhanced" is set too).
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

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

struct Rows {
  std::string times, read, peak, labels;
  int count = 0;
  double least = 0, most = 0;  ///< quartiles of all arms, us
};

Rows rows_of(const json& result) {
  Rows rows;
  for (const json& arm : result["arms"]) {
    if (!arm["median_ns"].is_number() || arm["role"] == "peak limit") continue;
    const int row = rows.count++;
    const double low = arm["q25_ns"].get<double>() / 1e3;
    const double high = arm["q75_ns"].get<double>() / 1e3;
    rows.least = row == 0 ? low : std::min(rows.least, low);
    rows.most = std::max(rows.most, high);
    rows.labels += fmt::format("{}{} {}", row > 0 ? ", " : "", quoted(arm["name"]), row);
    rows.times += fmt::format("{} {} {} {} {}\n", row, arm["median_ns"].get<double>() / 1e3, low, high,
                              quoted(format_time(arm["median_ns"])));
    if (arm["share_of_read"].is_number()) rows.read += fmt::format("{} {}\n", row, 100 * arm["share_of_read"].get<double>());
    if (arm["share_of_peak"].is_number()) rows.peak += fmt::format("{} {}\n", row, 100 * arm["share_of_peak"].get<double>());
  }
  return rows;
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

std::string plot_svg(const json& result, const std::string& prefix) {
  const Rows rows = rows_of(result);
  if (rows.count == 0) return "";
  std::string script = fmt::format(
      "set terminal svg size 1060,{} dynamic font 'sans-serif,12' name '{}' background '#ffffff'\nset encoding utf8\n"
      "set termoption noenhanced\n$times << EOD\n{}EOD\n$read << EOD\n{}EOD\n$peak << EOD\n{}EOD\n",
      90 + 26 * rows.count, prefix, rows.times, rows.read.empty() ? "0 NaN\n" : rows.read,
      rows.peak.empty() ? "0 NaN\n" : rows.peak);
  // Points, not bars: they mean the same on a logarithmic axis, which a portable tier a hundred times slower needs.
  const bool logarithmic = rows.most > 20 * rows.least && rows.least > 0;
  const std::string range = logarithmic ? fmt::format("set logscale x\nset xrange [{}:{}]\n", rows.least / 1.5, rows.most * 4)
                                        : fmt::format("set xrange [0:{}]\n", std::max(rows.most, 1e-6) * 1.25);
  script += fmt::format(
      "set multiplot\nset yrange [{}:-0.6]\nset ytics ({})\nset grid xtics ytics lc rgb '#dddddd' lt 1\nset border 3\nset tics "
      "nomirror\n"
      "set lmargin at screen 0.18\nset rmargin at screen 0.62\nset bmargin 4\nset tmargin 1\nunset key\n"
      "set xlabel 'us: median and quartiles{}'\n{}"
      "plot $times using 2:1:3:4 with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '#1f6f8b', "
      "$times using 4:1:5 with labels left offset char 1,0 tc rgb '#33424b'\n"
      "unset logscale x\nset lmargin at screen 0.65\nset rmargin at screen 0.97\nset ytics format ''\nunset ytics\n"
      "set style fill solid 1.0 noborder\nset xlabel '% of the read limit (blue), of the peak (orange)'\nset xrange [0:*]\n"
      "set arrow 1 from 100,graph 0 to 100,graph 1 nohead dt 2 lc rgb '#888888'\n"
      "plot $read using (0):1:(0):2:($1-0.32):($1) with boxxyerror lc rgb '#7aa6c2', "
      "$peak using (0):1:(0):2:($1):($1+0.32) with boxxyerror lc rgb '#e0a458'\nunset multiplot\n",
      rows.count - 0.4, rows.labels, logarithmic ? " (logarithmic)" : "", range);
  std::string svg = run_filter("gnuplot", script);
  const size_t begin = svg.find("<svg");
  return begin == std::string::npos ? "" : svg.substr(begin);
}

}  // namespace omnibench
