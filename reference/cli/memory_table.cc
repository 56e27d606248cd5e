// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/memory_table.h"

#include <fmt/format.h>

namespace ref::cli {

std::string memory_table(const CacheModel& model, const std::vector<int64_t>& contexts, int64_t chunk, omni_dtype type) {
  std::string text = "| context | allocated (hybrid) | flat | must be free |\n|---|---|---|---|\n";
  for (const CacheRow& row : cache_table(model, contexts, chunk, type)) {
    text += fmt::format("| {} | {} | {} | {} |\n", row.context, bytes_text(row.budget.hybrid), bytes_text(row.budget.flat),
                        bytes_text(row.budget.needed));
  }
  return text;
}

}  // namespace ref::cli
