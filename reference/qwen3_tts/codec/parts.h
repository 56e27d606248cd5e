// SPDX-License-Identifier: Apache-2.0
// What the stages of the codec's decoder are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/core/conv1d.h"
#include "reference/core/observer.h"
#include "reference/qwen3_tts/codec/history_rows.h"
#include "reference/qwen3_tts/codec/stage_clock.h"
#include "reference/qwen3_tts/model/stack.h"

namespace ref::tts {

// Convolution `name` of a checkpoint with its bias, which a transposed one of stride `repeat` stores once.
Conv1d make_conv(const ModelContext& context, const std::string& name, const Conv1dShape& shape, bool add, int64_t most_rows,
                 int64_t repeat = 1);
// What rows that convolution takes.
omni_dtype conv_rows(const ModelContext& context, const std::string& name, const Conv1dShape& shape);

// x + sin(x * a)^2 * b by channel, a = exp(alpha) and b = 1 / (exp(beta) + 1e-9), from fp32 rows.
class Snake {
 public:
  Snake(const ModelContext& context, const std::string& name, int64_t channels, omni_dtype y_type);
  // y may be x where both are fp32.
  void run(uint32_t rows, const Rows2d& x, const Rows2d& y) const;
  const omni_plan* plan() const { return plan_; }
  uint64_t bytes() const { return (a_.size() + b_.size()) * sizeof(float); }

 private:
  std::vector<float> a_, b_;
  const Backend* backend_;
  const omni_plan* plan_;
};

// fp32 rows without gaps, copied or rounded to the type of `to`.
void cast_rows(const Rows2d& x, int64_t rows, const Rows2d& to);

inline void observe_rows(Observer* observer, const std::string& name, int64_t position, int64_t rows, int64_t columns,
                         const Rows2d& x) {
  observe(observer, name, position, rows, columns, x.type, x.at(0), x.ld);
}

}  // namespace ref::tts
