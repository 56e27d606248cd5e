// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_PLOT_H
#define OMNI_BENCH_PLOT_H

#include <nlohmann/json.hpp>
#include <string>

#include "tools/common/run_filter.h"

namespace omnibench {

/// The plots of one result (time with spread; share of the limits) as inline SVG drawn by gnuplot; "" when gnuplot cannot be run.
/// `prefix` keeps the ids of several drawings on one page apart.
std::string plot_svg(const nlohmann::json& result, const std::string& prefix);

using omni_tools::run_filter;

}  // namespace omnibench
#endif
