// SPDX-License-Identifier: Apache-2.0
// Read bandwidth of memory as a plain load loop sees it: a figure to judge a machine by. omni-bench's read arm is the limit that
// kernels are held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace probe {

struct Bandwidth {
  uint32_t threads = 0;
  std::string pages;         // what was granted: "4 KiB", "2 MiB transparent", "2 MiB pool"
  uint64_t bytes = 0;        // read per pass
  double gb_per_second = 0;  // best of five passes, 1 GB = 10^9 bytes
};

// One thread and `threads` threads, on plain and on 2 MiB pages. The buffer is twice the last-level cache, at least 256 MiB, at
// most 1 GiB and a quarter of the free memory. An allocation that fails leaves its lines out and is named in `error`.
std::vector<Bandwidth> measure_bandwidth(uint64_t last_level_cache, uint32_t threads, std::string* error);

}  // namespace probe
