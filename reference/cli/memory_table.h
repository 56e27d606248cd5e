// SPDX-License-Identifier: Apache-2.0
// The memory of the cache by context length, as documents and omni-generate info show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/cache/budget.h"

namespace ref::cli {

inline const std::vector<int64_t> kTableContexts = {2048, 8192, 32768, 131072, 524288, 1048576};

// A Markdown table: the context, what is allocated, what one cache of the whole context in every layer would take, and what has to
// be free (a quarter more).
std::string memory_table(const CacheModel& model, const std::vector<int64_t>& contexts, int64_t chunk, omni_dtype type);

}  // namespace ref::cli
