// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPS_CONV_H
#define OMNI_BENCH_OPS_CONV_H

#include "bench/ops/op.h"

namespace omnibench {

/// Dense convolution over M frames; a frame is `rows` output rows.
std::vector<Part> conv1d_parts(const Case& c);
double conv1d_operations(const Case& c);
std::unique_ptr<Workload> make_conv1d(const Case& c, const Pool& pool);
/// The convolutions of the Qwen3-TTS codec decoder, in the order in which it runs them.
std::vector<Shape> codec_convolutions();

std::vector<Part> depthwise_parts(const Case& c);
double depthwise_operations(const Case& c);
std::unique_ptr<Workload> make_depthwise(const Case& c, const Pool& pool);

}  // namespace omnibench
#endif
