// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/embedding.h"

#include "reference/core/check.h"

namespace ref::spark {

Embedding::Embedding(const Config& config, const ModelWeights& weights, const Backend& backend)
    : backend_(backend), hidden_(config.hidden) {
  omni_gather_query query = {};
  query.size = sizeof query;
  query.out_type = OMNI_DTYPE_F32;
  query.max_isa = backend.isa();
  omni_dtype type = OMNI_DTYPE_BF16;
  const std::string name = "model.embedding.weight";
  if (weights.find_plain(name) != nullptr) {
    const Plain& plain = weights.plain(name, {config.vocabulary, hidden_});
    type = plain.type;
    table_ = plain.bytes;
    if (type == OMNI_DTYPE_F16) {
      wide_ = widen(plain);
      table_ = std::as_bytes(std::span(wide_));
      type = OMNI_DTYPE_F32;
    }
    query.plain_type = static_cast<uint16_t>(type);
    query.table.n = config.vocabulary;
    query.table.k = hidden_;
  } else {
    const Matrix& head = weights.matrix("lm_head", config.vocabulary, hidden_);
    if (!config.tied || (head.layout.format != OMNI_FORMAT_W16 && head.layout.format != OMNI_FORMAT_W32)) {
      throw Error(weights.name + ": has no tensor \"" + name + "\", and its head does not serve lookups");
    }
    type = head.layout.format == OMNI_FORMAT_W16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    table_ = head.codes;
    query.table = head.layout;
  }
  row_bytes_ = static_cast<uint64_t>(hidden_ * element_bytes(type));
  omni_plan* plan = nullptr;
  check(omni_gather_select(&query, &plan), "embedding");
  plan_.reset(plan);
}

void Embedding::gather(const int32_t* ids, int64_t count, float* out) const {
  omni_gather_args args = {};
  args.size = sizeof args;
  args.id_bytes = 4;
  args.count = count;
  args.ids = ids;
  args.table = table_.data();
  args.table_bytes = table_.size();
  args.out = out;
  args.ld_out = hidden_;
  args.parallel = &backend_.parallel;
  check(omni_gather_run(plan_.get(), &args), "embedding");
}

}  // namespace ref::spark
