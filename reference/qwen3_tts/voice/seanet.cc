// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/seanet.h"

#include <algorithm>
#include <cstring>

namespace ref::tts {
namespace {

constexpr char kPrefix[] = "encoder.encoder.layers.";
// Four frames: 64 channels of them are 2 MB.
constexpr int64_t kBlock = 4 * kFrameSamples;

std::string layer(int64_t index) { return kPrefix + std::to_string(index) + "."; }

void see(Observer* observer, const std::string& name, int64_t position, int64_t rows, const Rows2d& x) {
  observe(observer, name, position, rows, x.ld, x.type, x.at(0), x.ld);
}

}  // namespace

SeaNet::SeaNet(const CodecEncoderConfig& config, const ModelContext& context)
    : block_(kBlock),
      filters_(config.filters),
      hidden_(config.stack.hidden),
      first_(encoder_conv(context, layer(0) + "conv", {1, config.filters, 7, 1, 1}, kBlock)),
      last_(encoder_conv(context, layer(3 * static_cast<int64_t>(config.ratios.size()) + 2) + "conv",
                         {config.filters << config.ratios.size(), config.stack.hidden, 3, 1, 1}, kBlock)),
      last_elu_(OMNI_ACTIVATION_ELU, config.filters << config.ratios.size(), context),
      first_in_(OMNI_DTYPE_F32, 1, 6),
      last_in_(OMNI_DTYPE_F32, config.filters << config.ratios.size(), 2) {
  int64_t channels = filters_, index = 1, rows = block_;
  for (auto ratio = config.ratios.rbegin(); ratio != config.ratios.rend(); ++ratio, index += 3, channels *= 2) {
    const std::string inner = layer(index) + "block.1.conv", outer = layer(index) + "block.3.conv",
                      down = layer(index + 2) + "conv";
    const auto name = [](int64_t i) { return "seanet_layer" + std::to_string(i); };
    const int64_t r = *ratio;
    stages_.push_back({name(index),
                       name(index + 2),
                       channels,
                       r,
                       Elementwise(OMNI_ACTIVATION_ELU, channels, context),
                       Elementwise(OMNI_ACTIVATION_ELU, channels / 2, context),
                       encoder_conv(context, inner, {channels, channels / 2, 3, 1, 1}, rows),
                       encoder_conv(context, outer, {channels / 2, channels, 1, 1, 1}, rows, true, true),
                       encoder_conv(context, down, {channels, 2 * channels, 2 * r, 1, r}, rows),
                       HistoryRows(OMNI_DTYPE_F32, channels, 2),
                       HistoryRows(OMNI_DTYPE_F32, channels, r),
                       {},
                       {}});
    rows = (rows + r - 1) / r;
  }
  memory_ = Memory(layout(nullptr));
  layout(memory_.data());
}

size_t SeaNet::layout(std::byte* base) {
  Placement placement(base);
  first_in_.place(&placement, block_);
  int64_t rows = block_;
  for (Stage& stage : stages_) {
    stage.x = placement.rows(OMNI_DTYPE_F32, rows, stage.channels);
    stage.hidden = placement.rows(OMNI_DTYPE_F32, rows, stage.channels / 2);
    stage.inner_in.place(&placement, rows);
    stage.down_in.place(&placement, rows + stage.ratio);
    rows = (rows + stage.ratio - 1) / stage.ratio;
  }
  last_in_.place(&placement, rows);
  return placement.used();
}

void SeaNet::reset() {
  first_in_.reset();
  last_in_.reset();
  for (Stage& stage : stages_) {
    stage.inner_in.reset();
    stage.down_in.reset();
    stage.position = 0;
  }
}

// Rows of stage.x to rows of y, as many as are returned. Only the last block of a recording has rows that `ratio` does not divide.
int64_t SeaNet::run_stage(Stage* stage, int64_t rows, const Rows2d& y, Observer* observer) const {
  const Rows2d &x = stage->x, &hidden = stage->hidden, inner = stage->inner_in.fresh(), down = stage->down_in.fresh();
  const auto count = static_cast<uint32_t>(rows);
  stage->elu.run(rows, x.f32(0), x.ld, inner.f32(0), inner.ld);
  stage->inner.run(count, stage->inner_in.first(), inner.ld, hidden.at(0), hidden.ld);
  stage->inner_in.advance(rows);
  stage->hidden_elu.run(rows, hidden.f32(0), hidden.ld, hidden.f32(0), hidden.ld);
  stage->outer.run(count, hidden.at(0), hidden.ld, x.at(0), x.ld);
  see(observer, stage->block_name, stage->position, rows, x);
  stage->elu.run(rows, x.f32(0), x.ld, down.f32(0), down.ld);
  const int64_t made = (rows + stage->ratio - 1) / stage->ratio, whole = made * stage->ratio;
  std::memset(down.at(rows), 0, static_cast<size_t>((whole - rows) * stage->channels) * sizeof(float));
  stage->down.run(static_cast<uint32_t>(made), stage->down_in.first(), down.ld, y.at(0), y.ld);
  stage->down_in.advance(whole);
  see(observer, stage->down_name, stage->position / stage->ratio, made, y);
  stage->position += rows;
  return made;
}

std::vector<float> SeaNet::run(std::span<const float> samples, Observer* observer) {
  reset();
  std::vector<float> out;
  int64_t position = 0;
  for (size_t done = 0; done < samples.size(); done += static_cast<size_t>(block_)) {
    const auto part = samples.subspan(done, std::min(samples.size() - done, static_cast<size_t>(block_)));
    auto rows = static_cast<int64_t>(part.size());
    std::memcpy(first_in_.fresh().at(0), part.data(), part.size_bytes());
    const Rows2d first = stages_.front().x;
    first_.run(static_cast<uint32_t>(rows), first_in_.first(), 1, first.at(0), first.ld);
    first_in_.advance(rows);
    see(observer, "seanet_layer0", static_cast<int64_t>(done), rows, first);
    const Rows2d last = last_in_.fresh();
    for (size_t i = 0; i < stages_.size(); ++i) {
      rows = run_stage(&stages_[i], rows, i + 1 < stages_.size() ? stages_[i + 1].x : last, observer);
    }
    last_elu_.run(rows, last.f32(0), last.ld, last.f32(0), last.ld);
    out.resize(out.size() + static_cast<size_t>(rows * hidden_));
    float* y = out.data() + position * hidden_;
    last_.run(static_cast<uint32_t>(rows), last_in_.first(), last.ld, y, hidden_);
    last_in_.advance(rows);
    observe(observer, "seanet_layer" + std::to_string(3 * stages_.size() + 2), position, rows, hidden_, OMNI_DTYPE_F32, y, hidden_);
    position += rows;
  }
  return out;
}

}  // namespace ref::tts
