// SPDX-License-Identifier: Apache-2.0
// The commands of omni-generate. Each adds its options, and then runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/common/cli_names.h"

namespace ref::cli {

// Result: the exit code. Throws Failure, Interrupted, Error.
using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* summary;
  Run (*add)(CLI::App* app);  // what it returns owns the options
};

Run add_generate(CLI::App* app);
Run add_perplexity(CLI::App* app);
Run add_compare(CLI::App* app);
Run add_logits(CLI::App* app);
Run add_parity(CLI::App* app);
Run add_bench(CLI::App* app);
Run add_info(CLI::App* app);

}  // namespace ref::cli
