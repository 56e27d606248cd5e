// SPDX-License-Identifier: Apache-2.0
// Codes to rows: entry of the first codebook and sum of the entries of the others, each through its projection, added.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/core/row_table.h"
#include "reference/qwen3_tts/codec/parts.h"

namespace ref::tts {

class Quantiser {
 public:
  // Over up to `most_rows` frames at once.
  Quantiser(const CodecDecoderConfig& config, const ModelContext& context, int64_t most_rows, StageClock* clock);

  void place(Placement* placement);
  // A row of output() for each frame, whose codes must be checked.
  void run(std::span<const Frame> frames, int64_t position, StageClock* clock, Observer* observer) const;
  const Rows2d& output() const { return output_; }

  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  // Rows of `level`s [first, last) of a frame, summed in their order.
  struct Part {
    std::vector<RowTable> tables;
    Linear projection;
    omni_dtype row_type;
  };
  static Part part(const ModelContext& context, const std::string& name, int64_t levels, const CodecDecoderConfig& config);
  void project(const Part& part, size_t level, std::span<const Frame> frames, const Rows2d& out) const;

  int64_t most_rows_, width_;
  Part first_, rest_;
  Rows2d entries_, cast_, rest_rows_, output_;
  size_t lap_;
};

}  // namespace ref::tts
