// SPDX-License-Identifier: Apache-2.0
#include "bench/plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/report.h"
#include "tools/common/run_filter.h"

namespace omnibench {
namespace {

using nlohmann::json;

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
    rows.labels += fmt::format("{}{} {}", row > 0 ? ", " : "", omni_tools::gnuplot_string(arm["name"]), row);
    rows.times += fmt::format("{} {} {} {} {}\n", row, arm["median_ns"].get<double>() / 1e3, low, high,
                              omni_tools::gnuplot_string(format_time(arm["median_ns"])));
    if (arm["share_of_read"].is_number()) rows.read += fmt::format("{} {}\n", row, 100 * arm["share_of_read"].get<double>());
    if (arm["share_of_peak"].is_number()) rows.peak += fmt::format("{} {}\n", row, 100 * arm["share_of_peak"].get<double>());
  }
  return rows;
}

}  // namespace

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
  std::string svg = omni_tools::run_filter("gnuplot", script);
  const size_t begin = svg.find("<svg");
  return begin == std::string::npos ? "" : svg.substr(begin);
}

}  // namespace omnibench
