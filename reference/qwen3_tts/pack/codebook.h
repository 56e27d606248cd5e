// SPDX-License-Identifier: Apache-2.0
// Plain tensors that are computed from those of a checkpoint: codebooks, and depthwise convolutions turned round.
#pragma once

#include "reference/io/checkpoint.h"
#include "reference/pack/plan.h"
#include "reference/pack/tensor_use.h"
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {

// Entries of a quantiser's levels: sums divided by max(usage, 1e-5), in fp32. Throws Error naming the tensor that is absent or of
// another shape; an entry that is not finite throws when it is packed.
PlainPlan plan_codebook(const Checkpoint& checkpoint, const PartPlain& codebook, TensorUse* use);

// [taps][channels] in fp32, of a tensor [channels][1][taps].
PlainPlan plan_depthwise(const Checkpoint& checkpoint, const PartPlain& depthwise, TensorUse* use);

}  // namespace ref::tts
