// SPDX-License-Identifier: Apache-2.0
// The convolutions of the Mimi encoder: 24 kHz samples to rows at 25 Hz, a block of samples at a time with what each convolution
// has to remember between them, so that memory is that of a block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/qwen3_tts/codec/history_rows.h"
#include "reference/qwen3_tts/voice/parts.h"

namespace ref::tts {

class SeaNet {
 public:
  SeaNet(const CodecEncoderConfig& config, const ModelContext& context);

  // Rows of one recording, [ceil(samples / 960)][hidden]. Allocates nothing but the result.
  std::vector<float> run(std::span<const float> samples, Observer* observer);

 private:
  // A residual block, then a convolution that makes `ratio` rows one.
  struct Stage {
    std::string block_name, down_name;  // what an observer sees
    int64_t channels, ratio;
    Elementwise elu, hidden_elu;
    Conv1d inner, outer, down;
    HistoryRows inner_in, down_in;  // behind an ELU
    Rows2d x, hidden;
    int64_t position = 0;  // of the next row in
  };

  size_t layout(std::byte* base);
  void reset();
  int64_t run_stage(Stage* stage, int64_t rows, const Rows2d& y, Observer* observer) const;

  int64_t block_, filters_, hidden_;
  Conv1d first_, last_;
  std::vector<Stage> stages_;
  Elementwise last_elu_;
  HistoryRows first_in_, last_in_;
  Memory memory_;
};

}  // namespace ref::tts
