// SPDX-License-Identifier: Apache-2.0
// omni-bench. Exit status: 0 done; 1 an arm, a pass or a comparison failed; 2 bad input or nothing that fits memory, 3 (verify) a
// malformed file, with one line on standard error.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "bench/golden/verify.h"
#include "bench/run.h"
#include "omni/omni.h"

namespace omnibench {
namespace {

int dispatch(const Options& options) {
  switch (options.action) {
    case Action::kRun:
      return run_command_line(options.run);
    case Action::kSuite:
      return run_suite(options);
    case Action::kList:
      return list_everything();
    case Action::kCompare:
      return compare_files(options);
    case Action::kWorker:
      return serve_as_worker(options.run);
    case Action::kVerify:
      return run_verify(options.verify);
    case Action::kHelp:
      break;
  }
  fmt::print("{}", options.help);
  return 0;
}

}  // namespace
}  // namespace omnibench

int main(int argc, char** argv) {
  try {
    if (omni_initialize() != OMNI_OK) throw omnibench::UsageError(omni_last_error());
    const int status = omnibench::dispatch(omnibench::parse_options(argc, argv));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw std::runtime_error("stdout: cannot write");
    return status;
  } catch (const omnibench::UsageError& error) {
    fmt::print(stderr, "omni-bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "omni-bench: {}\n", error.what());
    return 1;
  }
}
