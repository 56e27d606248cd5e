// SPDX-License-Identifier: Apache-2.0
// Rotation, cache and attention of heads that lie side by side in rows of q, k and v.
#pragma once

#include <cstdint>

#include "omni/omni.h"
#include "reference/core/plan_map.h"
#include "reference/core/rows.h"

namespace ref {

struct AttentionShape {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // whole heads are rotated
  int64_t window = 0;                             // positions that a row sees, its own included; 0: all before it
  omni_dtype cache = OMNI_DTYPE_F32;
};

// Rows of a table of cosines and sines, of positions [p0, p1).
struct RopeSlice {
  const std::byte* data;
  size_t bytes;
  int64_t p0, p1;
};

class SelfAttention {
 public:
  // Rows of q, k, v are fp32, those that come out of `out_type`.
  SelfAttention(const AttentionShape& shape, omni_dtype out_type, PlanMap& plans);

  struct Call {
    uint32_t rows;
    int64_t position;          // of row 0
    const int32_t* positions;  // of every row
    RopeSlice rope;            // holds them
    omni_kv_cache* cache;      // end is position
    Rows2d qkv;                // queries and keys are rotated in place
    Rows2d out;
  };
  // Never allocates.
  void run(const Call& call) const;

  omni_dtype out_type() const { return out_type_; }
  const omni_plan* rope_plan() const { return rope_plan_; }
  const omni_plan* attention_plan() const { return attention_plan_; }

 private:
  AttentionShape shape_;
  omni_dtype out_type_;
  const Backend* backend_;
  const omni_plan *rope_plan_, *attention_plan_;
};

}  // namespace ref
