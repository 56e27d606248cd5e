// SPDX-License-Identifier: Apache-2.0
// The Mimi encoder's transformer: LayerNorm, attention over all that came before, GELU, and a scale on what each branch adds.
#pragma once

#include <cstdint>
#include <string>

#include "reference/cache/kv.h"
#include "reference/core/rope_table.h"
#include "reference/core/self_attention.h"
#include "reference/qwen3_tts/voice/parts.h"

namespace ref::tts {

// Rows [rows][hidden] in place, a layer at a time over all of them: so one layer's keys and values are all that there are, 61 MB
// for ten minutes.
void run_encoder_transformer(const StackShape& shape, EncoderContext* encoder, float* x, int64_t rows);

}  // namespace ref::tts
