// SPDX-License-Identifier: Apache-2.0
// Packs one tensor of a plan, slice by slice, into a sink.
#pragma once

#include <functional>

#include "reference/pack/image.h"
#include "reference/pack/packer.h"
#include "reference/pack/sink.h"

namespace ref {

struct PackTarget {
  const Image& image;
  Sink& sink;
  const PackOptions& options;
  const omni_parallel* parallel;
  std::function<void(const std::string& tensor, uint64_t bytes)> written;  // after each piece
};

TensorReport pack_matrix(const MatrixPlan& plan, const PackTarget& target);
TensorReport pack_plain(const PlainPlan& plan, const PackTarget& target);
// What stands between tensors.
void pack_padding(const PackTarget& target);

}  // namespace ref
