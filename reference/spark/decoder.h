// SPDX-License-Identifier: Apache-2.0
// The Spark-X2.5 decoder: one sequence, its caches, and the forward pass through the public kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/cache/budget.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/spark/config.h"

namespace ref::spark {

enum class Precision : uint8_t {
  kDefault,  // bf16 rows between the layers' kernels, fp32 residual stream
  kFp32      // everything in fp32, scales and zeros too: for comparison with a reference
};

struct DecoderOptions {
  int64_t context = 2048;              // most tokens of the sequence
  int64_t chunk = 512;                 // most rows that go through the layers at once
  omni_dtype cache = OMNI_DTYPE_BF16;  // also F32 and S8; kFp32 always uses F32
  Precision precision = Precision::kDefault;
  bool fused_norm = true;                   // residual add inside the norm, else inside the linear layer before it: the same bits
  bool int8_head_rows = true;               // rows of an int8 head are quantised (exact integers), else bf16
  uint64_t memory_limit = 0;                // for the caches; 0: what the machine has available
  std::string max_isa = {};                 // caps every kernel; empty: none
  const omni_parallel* parallel = nullptr;  // nullptr: the process-wide pool
};

// Which rows get logits.
enum class Rows : uint8_t { kNone, kLast, kAll };

// The layers' attention, as the budget of caches takes it.
CacheModel cache_model(const Config& config);

// Limits and defaults that depend on each other: a chunk within the context, the cache of kFp32. Throws Error naming the value.
DecoderOptions checked_options(DecoderOptions options);
// Throws Error naming the first id outside of the vocabulary.
void check_ids(std::span<const int32_t> ids, const Config& config);

class Decoder {
 public:
  // Throws Error: shapes that do not fit the config, a cache that memory does not allow (with both figures).
  Decoder(std::shared_ptr<const ModelWeights> weights, const DecoderOptions& options);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  const Config& config() const;
  const DecoderOptions& options() const;
  // Tokens held; the next one has this position.
  int64_t position() const;
  void reset();
  // Takes tokens back, to `position`. Throws Error when a window no longer holds the keys that the next token would see.
  void rewind(int64_t position);

  // Appends tokens, in chunks of any number. `logits` is empty, [V] or [ids.size()][V] as `rows` says. The bits do not depend on
  // how a sequence is cut into calls. Throws Error naming an id outside of the vocabulary, or tokens and context when it is full;
  // then nothing was appended. With an observer `logits` may be empty, too: rows then go to it alone, 64 at a time as "logits".
  // Without one the last layer is computed for the rows that get logits only.
  void forward(std::span<const int32_t> ids, Rows rows, std::span<float> logits, Observer* observer = nullptr);

  // What one decoded token reads: packed weights (the head included) and the cache at the position it stands at.
  uint64_t weight_bytes_per_token() const;
  uint64_t cache_bytes_at(int64_t position) const;
  // Bytes of all caches, as allocated.
  uint64_t cache_bytes() const;
  // One line for each kind of operation: the kernel that serves it and why.
  std::vector<std::string> describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ref::spark
