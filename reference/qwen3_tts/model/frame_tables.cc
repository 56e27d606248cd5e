// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/frame_tables.h"

#include "reference/core/error.h"

namespace ref::tts {

FrameTables::FrameTables(const Config& config, const ModelWeights& weights)
    : codec_(weights.plain("talker.model.codec_embedding.weight", {config.talker.vocabulary, config.talker.stack.hidden})) {
  for (int64_t j = 0; j + 1 < kCodebooks; ++j) {
    const std::string name = "talker.code_predictor.model.codec_embedding." + std::to_string(j) + ".weight";
    codes_.emplace_back(weights.plain(name, {config.predictor.vocabulary, config.talker.stack.hidden}));
  }
}

void FrameTables::check_code(int64_t codebook, int32_t code) const {
  const int64_t most = codebook == 0 ? codec_.rows() : codes_[static_cast<size_t>(codebook - 1)].rows();
  if (code < 0 || code >= most) {
    throw Error("code " + std::to_string(code) + " of codebook " + std::to_string(codebook) + " is outside of 0.." +
                std::to_string(most - 1));
  }
}

void FrameTables::codec(int32_t id, float* row) const {
  check_code(0, id);
  codec_.copy(id, row);
}

void FrameTables::code(int64_t codebook, int32_t code, float* row) const {
  check_code(codebook, code);
  codes_[static_cast<size_t>(codebook - 1)].copy(code, row);
}

void FrameTables::frame(const Frame& frame, float* row) const {
  for (size_t j = 0; j < frame.size(); ++j) check_code(static_cast<int64_t>(j), frame[j]);
  codec_.copy(frame[0], row);
  for (size_t j = 0; j < codes_.size(); ++j) codes_[j].add(frame[j + 1], row);
}

uint64_t FrameTables::frame_bytes() const {
  uint64_t bytes = codec_.row_bytes();
  for (const RowTable& table : codes_) bytes += table.row_bytes();
  return bytes;
}

}  // namespace ref::tts
