// SPDX-License-Identifier: Apache-2.0
// The commands of omni-speak. Each adds its options, and then runs.
#pragma once

#include "reference/cli/commands.h"

namespace ref::speak {

using cli::Run;

Run add_speak(CLI::App* app);
Run add_parity(CLI::App* app);
Run add_compare(CLI::App* app);
Run add_bench(CLI::App* app);
Run add_info(CLI::App* app);

}  // namespace ref::speak
