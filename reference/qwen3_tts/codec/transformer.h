// SPDX-License-Identifier: Apache-2.0
// The codec's transformer: pre-norm layers with attention over a window, SwiGLU, and a scale on what each branch adds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/cache/kv.h"
#include "reference/core/self_attention.h"
#include "reference/core/stream_norm.h"
#include "reference/qwen3_tts/codec/parts.h"
#include "reference/qwen3_tts/codec/rope_rows.h"

namespace ref::tts {

class CodecLayer {
 public:
  CodecLayer(const CodecDecoderConfig& config, int64_t index, const ModelContext& context);

  struct Call {
    const StackBuffers& buffers;
    RopeSlice rope;
    omni_kv_cache* cache;
    int64_t position;
    uint32_t rows;
    bool pending;  // buffers.branch is still to be added to the stream
    Observer* observer;
  };
  // Leaves buffers.branch to be added to the stream.
  void run(const Call& call) const;

  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  const StackShape shape_;
  int64_t index_;
  const Backend* backend_;
  omni_dtype product_type_;
  std::vector<float> attention_scale_, feed_scale_;
  std::optional<StreamNorm> attention_norm_, feed_norm_;
  std::optional<Linear> qkv_, out_, gate_up_, down_;
  std::optional<SelfAttention> attention_;
  const omni_plan* swiglu_plan_;
};

class CodecTransformer {
 public:
  // Over up to `most_rows` rows at once.
  CodecTransformer(const CodecDecoderConfig& config, const ModelContext& context, int64_t most_rows, StageClock* clock);

  void place(Placement* placement);
  void reset();
  // Rows of output() from rows of x at `position`, both fp32 and `latent` wide.
  void run(const Rows2d& x, uint32_t rows, int64_t position, StageClock* clock, Observer* observer);
  const Rows2d& output() const { return output_; }

  uint64_t state_bytes() const { return caches_.bytes(); }
  uint64_t working_bytes() const { return caches_.bytes() + buffers_.bytes(); }
  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  int64_t most_rows_;
  const Backend* backend_;
  std::vector<CodecLayer> layers_;
  Linear input_proj_, output_proj_;
  omni_dtype input_type_, normed_type_;
  StreamNorm final_norm_;
  RopeRows rope_;
  KvCaches caches_;
  StackBuffers buffers_;
  Rows2d input_, output_;
  size_t lap_;
};

}  // namespace ref::tts
