// SPDX-License-Identifier: Apache-2.0
// Cosines and sines of the positions in use: rows are made as a sequence reaches them, whatever a config says about the most
// positions there could be.
#pragma once

#include <cstdint>

#include "reference/core/memory.h"

namespace ref {

class RopeTable {
 public:
  // For positions [0, positions); rot 0 makes no table.
  RopeTable(int64_t rot, double theta, int64_t positions);
  // Rows up to `end` exist afterwards. Never allocates.
  void extend(int64_t end);

  int64_t rot() const { return rot_; }
  const std::byte* data() const { return memory_.data(); }
  int64_t made() const { return made_; }
  size_t made_bytes() const { return static_cast<size_t>(made_ * rot_) * sizeof(float); }

 private:
  int64_t rot_;
  double theta_;
  int64_t positions_;
  int64_t made_ = 0;
  Memory memory_;
};

}  // namespace ref
