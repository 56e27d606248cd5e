// SPDX-License-Identifier: Apache-2.0
// What happens to the heads of q, k and v between two linear layers: norm, rotation, the cache, attention. A group of K/V heads and
// the query heads that read them goes through all of it on one thread, so that a decoded row costs one parallel region instead of
// four, most of which would be too short to share.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/cache/kv.h"
#include "reference/core/memory.h"
#include "reference/core/plan_map.h"
#include "reference/core/rope_table.h"
#include "reference/core/rows.h"
#include "reference/qwen3_tts/config.h"

namespace ref::tts {

class HeadGroups {
 public:
  // Of rows [q heads | k heads | v heads] in fp32.
  HeadGroups(const StackShape& shape, omni_dtype cache, PlanMap& plans);

  // Groups of a layer, each with a cache of its own: the least number that divides the K/V heads and gives every thread one.
  static int64_t count_for(const StackShape& shape, const Backend& backend);
  int64_t count() const { return groups_; }

  struct Call {
    const Rows2d& qkv;    // q and k are normalised and rotated in place
    const Rows2d& heads;  // outputs in fp32 or bf16, of the rows behind `skip`
    const float* q_norm;
    const float* k_norm;
    const int32_t* positions;
    const RopeTable& rope;
    KvCaches& caches;
    int64_t first_cache;  // of the layer's groups
    int64_t position;     // of row 0
    uint32_t rows, skip;
  };
  void run(const Call& call) const;

  const omni_plan* attention_plan(omni_dtype out_type) const { return out_type == OMNI_DTYPE_F32 ? to_fp32_ : to_bf16_; }
  const omni_plan* norm_plan() const { return q_norm_; }
  const omni_plan* rope_plan() const { return q_rope_; }

 private:
  omni_status run_group(const Call& call, int64_t group) const;
  omni_status norm(const Call& call, int64_t group) const;
  omni_status rotate(const Call& call, const omni_plan* plan, int64_t column) const;
  omni_status attend(const Call& call, int64_t group) const;

  const Backend& backend_;
  int64_t groups_, q_width_, kv_width_;  // columns of a group
  int64_t k_column_, v_column_;          // of group 0
  const omni_plan *q_norm_, *k_norm_, *q_rope_, *k_rope_, *to_fp32_, *to_bf16_;
  size_t workspace_bytes_ = 0;  // of a group
  Memory workspace_;
};

}  // namespace ref::tts
