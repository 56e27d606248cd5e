// SPDX-License-Identifier: Apache-2.0
// Test support: a language model whose logits a function of its sequence gives.
#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#include "reference/generate/token_model.h"

namespace ref::testing {

class FakeModel : public TokenModel {
 public:
  using Logits = std::function<std::vector<float>(const std::vector<int32_t>& sequence)>;
  FakeModel(int64_t vocabulary, int64_t context, Logits logits)
      : vocabulary_(vocabulary), context_(context), logits_(std::move(logits)) {}

  int64_t vocabulary() const override { return vocabulary_; }
  int64_t context() const override { return context_; }
  int64_t position() const override { return static_cast<int64_t>(sequence_.size()); }
  void reset() override {
    sequence_.clear();
    ++resets;
  }
  void append(std::span<const int32_t> ids) override {
    for (const int32_t id : ids) push(id);
  }
  void append_last(std::span<const int32_t> ids, std::span<float> logits) override {
    append(ids);
    std::ranges::copy(logits_(sequence_), logits.begin());
  }
  void append_all(std::span<const int32_t> ids, std::span<float> logits) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      append_last(ids.subspan(i, 1), logits.subspan(i * static_cast<size_t>(vocabulary_), static_cast<size_t>(vocabulary_)));
    }
  }

  int resets = 0;

 private:
  void push(int32_t id) {
    if (position() >= context_) throw std::logic_error("the context is full");
    sequence_.push_back(id);
  }

  int64_t vocabulary_, context_;
  Logits logits_;
  std::vector<int32_t> sequence_;
};

}  // namespace ref::testing
