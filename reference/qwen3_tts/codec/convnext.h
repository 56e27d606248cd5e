// SPDX-License-Identifier: Apache-2.0
// A stage that makes `ratio` rows of one: a transposed convolution as long as its stride, then a ConvNeXt block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/qwen3_tts/codec/parts.h"

namespace ref::tts {

class ConvNextStage {
 public:
  // `index` from 0; rows of `channels`, `most_rows` of them at once.
  ConvNextStage(const ModelContext& context, int64_t index, int64_t channels, int64_t ratio, int64_t most_rows, StageClock* clock);

  void place(Placement* placement);
  void reset() const { upsampled_.reset(); }
  // rows * ratio rows of output() from fp32 rows of x.
  void run(const Rows2d& x, uint32_t rows, int64_t position, StageClock* clock, Observer* observer) const;
  Rows2d output() const { return output_; }

  int64_t ratio() const { return ratio_; }
  size_t state_bytes() const { return upsampled_.bytes(); }
  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  void add_branch(int64_t rows) const;

  std::string label_;
  int64_t channels_, ratio_, most_rows_;
  const Backend* backend_;
  Conv1d tconv_;
  std::vector<float> depthwise_, depthwise_bias_, norm_, norm_bias_, gamma_;
  Linear wide_, narrow_;
  omni_dtype normed_type_, active_type_;
  const omni_plan *depthwise_plan_, *norm_plan_, *gelu_plan_;
  Rows2d input_;           // of tconv_
  HistoryRows upsampled_;  // fp32, of the depthwise convolution
  Rows2d branch_, normed_, hidden_, active_, output_;
  size_t lap_;
};

}  // namespace ref::tts
