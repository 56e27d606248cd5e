// SPDX-License-Identifier: Apache-2.0
// What the program does, one function for each subcommand; each returns the exit status.
#ifndef OMNI_BENCH_RUN_H
#define OMNI_BENCH_RUN_H

#include "bench/options.h"

namespace omnibench {

/// 0; 1 when an arm or a pass failed. Throws UsageError (status 2).
int run_command_line(const RunOptions& options);
/// The rows of the suite, within their budget. Status as above.
int run_suite(const Options& options);
int list_everything();
/// 0; 1 with --fail-on-slower when the second report is slower somewhere.
int compare_files(const Options& options);
/// Serves cases on standard input until it ends.
int serve_as_worker(const RunOptions& options);

}  // namespace omnibench
#endif
