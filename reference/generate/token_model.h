// SPDX-License-Identifier: Apache-2.0
// A language model as generation and evaluation see it: one sequence of tokens, and logits.
#pragma once

#include <cstdint>
#include <span>

namespace ref {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual int64_t vocabulary() const = 0;
  virtual int64_t context() const = 0;   // most tokens of the sequence
  virtual int64_t position() const = 0;  // tokens that it holds
  virtual void reset() = 0;
  // Appends tokens. `logits` is empty; of the last token, [V]; or of every token, [ids.size()][V].
  virtual void append(std::span<const int32_t> ids) = 0;
  virtual void append_last(std::span<const int32_t> ids, std::span<float> logits) = 0;
  virtual void append_all(std::span<const int32_t> ids, std::span<float> logits) = 0;
};

}  // namespace ref
