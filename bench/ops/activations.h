// SPDX-License-Identifier: Apache-2.0
// Operations that have or make rows of activations; each has its own file.
#ifndef OMNI_BENCH_OPS_ACTIVATIONS_H
#define OMNI_BENCH_OPS_ACTIVATIONS_H

#include "bench/ops/op.h"

namespace omnibench {

std::vector<Part> rmsnorm_parts(const Case& c);
std::unique_ptr<Workload> make_rmsnorm(const Case& c, const Pool& pool);

std::vector<Part> headgate_parts(const Case& c);
double headgate_operations(const Case& c);
std::unique_ptr<Workload> make_headgate(const Case& c, const Pool& pool);

std::vector<Part> gated_parts(const Case& c);
std::unique_ptr<Workload> make_geglu(const Case& c, const Pool& pool);
std::unique_ptr<Workload> make_swiglu(const Case& c, const Pool& pool);

std::vector<Part> headnorm_parts(const Case& c);
std::unique_ptr<Workload> make_headnorm(const Case& c, const Pool& pool);

std::vector<Part> layernorm_parts(const Case& c);
std::unique_ptr<Workload> make_layernorm(const Case& c, const Pool& pool);

std::vector<Part> activation_parts(const Case& c);
std::unique_ptr<Workload> make_activation(const Case& c, const Pool& pool);

std::vector<Part> rope_parts(const Case& c);
std::unique_ptr<Workload> make_rope(const Case& c, const Pool& pool);

std::vector<Part> gather_parts(const Case& c);
std::unique_ptr<Workload> make_gather(const Case& c, const Pool& pool);

std::vector<Part> quantize_parts(const Case& c);
std::unique_ptr<Workload> make_quantize(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
