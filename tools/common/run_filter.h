// SPDX-License-Identifier: Apache-2.0
// A program that reads its standard input and writes its standard output, as a function. Plots are drawn so, by gnuplot.
#ifndef OMNI_TOOLS_RUN_FILTER_H
#define OMNI_TOOLS_RUN_FILTER_H

#include <string>

namespace omni_tools {

/// Runs a program (found in PATH) with `input` on its standard input; returns its standard output, "" on any failure.
std::string run_filter(const char* program, const std::string& input);

/// The text as a double-quoted string of gnuplot in which nothing is to be interpreted ("noenhanced" is to be set too).
std::string gnuplot_string(const std::string& text);

}  // namespace omni_tools
#endif
