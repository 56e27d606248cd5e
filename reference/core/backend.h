// SPDX-License-Identifier: Apache-2.0
// What the kernels of one model run on: the threads, the cap on instructions, the most rows of a call, and scratch that they share.
#pragma once

#include <cstdint>
#include <string>

#include "omni/omni.h"
#include "reference/core/memory.h"

namespace ref {

struct Backend {
  omni_parallel parallel;  // a copy, so that the thread count that workspaces are made for stays
  std::string max_isa;
  uint32_t max_rows = 1;
  size_t workspace_bytes = 0;  // the largest that a plan asked for
  Memory workspace = {};       // one operation runs at a time, so one serves all

  Backend(const omni_parallel* threads, std::string isa, uint32_t rows) : max_isa(std::move(isa)), max_rows(rows) {
    if (threads != nullptr) {
      parallel = *threads;
    } else {
      parallel = {sizeof(omni_parallel), 0, nullptr, nullptr};
      check(omni_default_parallel(&parallel), "threads");
    }
  }
  const char* isa() const { return max_isa.empty() ? nullptr : max_isa.c_str(); }
  void need_workspace(size_t bytes) { workspace_bytes = bytes > workspace_bytes ? bytes : workspace_bytes; }
  // After the last plan.
  void allocate() { workspace = Memory(workspace_bytes); }
};

}  // namespace ref
