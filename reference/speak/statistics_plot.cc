// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "reference/speak/statistics.h"
#include "tools/common/run_filter.h"

namespace ref::speak {
std::string statistics_svg(const SpeechRun& run, const std::string& title) {
  std::string rows, labels;
  int row = 0;
  for (const Stage& stage : stages_of(run)) {
    const std::string value = fmt::format("{:.2f} ms, {:.0f} %", stage.milliseconds, 100 * stage.share());
    rows += fmt::format("{} {} {} {}\n", row, stage.milliseconds, stage.part ? "0xb9d3e0" : "0x1f6f8b",
                        omni_tools::gnuplot_string(value));
    labels += fmt::format("{}{} {}", row > 0 ? ", " : "", omni_tools::gnuplot_string((stage.part ? "  " : "") + stage.name), row);
    ++row;
  }
  const std::string script = fmt::format(
      "set terminal svg size 860,{} dynamic font 'sans-serif,12' name 'stages' background '#ffffff'\nset encoding utf8\n"
      "set termoption noenhanced\n$rows << EOD\n{}EOD\n"
      "set title {}\nset yrange [{}:-0.6]\nset xrange [0:*]\nset ytics ({})\nset grid xtics lc rgb '#dddddd' lt 1\nset border 3\n"
      "set tics nomirror\nset lmargin 16\nset rmargin 14\nunset key\nset style fill solid 1.0 noborder\n"
      "set xlabel 'ms a frame; a frame is heard for 80 ms (dashed)'\n"
      "set arrow 1 from 80,graph 0 to 80,graph 1 nohead dt 2 lc rgb '#888888'\n"
      "plot $rows using (0):1:(0):2:($1-0.36):($1+0.36):3 with boxxyerror lc rgb variable, "
      "$rows using 2:1:4 with labels left offset char 1,0 tc rgb '#33424b'\n",
      110 + 22 * row, rows, omni_tools::gnuplot_string(title), row - 0.4, labels);
  const std::string svg = omni_tools::run_filter("gnuplot", script);
  const size_t begin = svg.find("<svg");
  return begin == std::string::npos ? "" : svg.substr(begin) + (svg.ends_with('\n') ? "" : "\n");
}

}  // namespace ref::speak
