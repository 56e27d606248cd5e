// SPDX-License-Identifier: Apache-2.0
// Reads memory as fast as this machine can: the limit that decoding is measured against.
#pragma once

#include <vector>

#include "reference/core/model_weights.h"

namespace ref::cli {

// The weights that a token reads, cut into pieces for the pool: each matrix's codes and scales.
std::vector<Bytes> weight_pieces(const ModelWeights& weights);

// Reads every byte once on the process-wide pool; seconds.
double read_once(const std::vector<Bytes>& pieces);

}  // namespace ref::cli
