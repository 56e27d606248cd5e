// SPDX-License-Identifier: Apache-2.0
// Plans of the operations beside the linear layers: made once for each question, shared by all who ask it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "reference/core/backend.h"

namespace ref {

class PlanMap {
 public:
  explicit PlanMap(Backend& backend) : backend_(backend) {}

  // The plan that `select` makes of `query`, whose size and cap of the instructions are set here. `what` begins error lines.
  template <typename Query>
  const omni_plan* find(const char* what, omni_status (*select)(const Query*, omni_plan**), Query query) {
    query.size = sizeof query;
    query.max_isa = backend_.isa();
    // Bytes, not fields: no field can be forgotten. Padding that differs would only make a plan twice.
    const std::string bytes(reinterpret_cast<const char*>(&query), sizeof query);
    Plan& known = plans_[{reinterpret_cast<void*>(select), bytes}];
    if (known) return known.get();
    omni_plan* plan = nullptr;
    check(select(&query, &plan), what);
    known.reset(plan);
    return plan;
  }
  // Reserves the workspace of an attention plan, for as many rows as the backend may see.
  const omni_plan* attention(omni_attention_query query) {
    query.max_m = backend_.max_rows;
    query.max_threads = backend_.parallel.threads;
    const omni_plan* plan = find("attention", omni_attention_select, query);
    for (uint32_t rows = 1; rows <= backend_.max_rows; ++rows) {  // no rising function of the rows
      size_t bytes = 0;
      check(omni_attention_workspace_size(plan, rows, &bytes), "attention");
      backend_.need_workspace(bytes);
    }
    return plan;
  }
  Backend& backend() const { return backend_; }

 private:
  Backend& backend_;
  std::map<std::pair<void*, std::string>, Plan> plans_;
};

}  // namespace ref
