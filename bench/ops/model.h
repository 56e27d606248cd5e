// SPDX-License-Identifier: Apache-2.0
// Whole models, of text or speech, which other programs run: this one measures them interleaved, beside what memory can deliver.
#ifndef OMNI_BENCH_OPS_MODEL_H
#define OMNI_BENCH_OPS_MODEL_H

#include "bench/ops/op.h"

namespace omnibench {

std::vector<Part> model_parts(const Case& c);
std::unique_ptr<Workload> make_model(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
