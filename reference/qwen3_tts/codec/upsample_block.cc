// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/upsample_block.h"

#include "reference/core/describe.h"

namespace ref::tts {
namespace {

constexpr int64_t kWideTaps = 7;
constexpr int64_t kDilations[] = {1, 3, 9};

Conv1dShape wide_shape(int64_t channels, int64_t dilation) { return {channels, channels, kWideTaps, dilation}; }
Conv1dShape narrow_shape(int64_t channels) { return {channels, channels}; }
// The kernel is two strides long.
Conv1dShape tconv_shape(const UpsampleBlock::Shape& shape) { return {shape.inputs, shape.rate * shape.outputs, 2}; }

std::string block_prefix(int64_t index) { return "decoder.decoder." + std::to_string(index) + ".block."; }

}  // namespace

ResidualUnit::ResidualUnit(const ModelContext& context, const std::string& name, int64_t channels, int64_t dilation,
                           int64_t most_rows)
    : most_rows_(most_rows),
      wide_(make_conv(context, name + ".conv1.conv", wide_shape(channels, dilation), false, most_rows)),
      narrow_(make_conv(context, name + ".conv2.conv", narrow_shape(channels), true, most_rows)),
      input_(wide_.x_type(), channels, wide_.shape().history()),
      act1_(context, name + ".act1", channels, wide_.x_type()),
      act2_(context, name + ".act2", channels, narrow_.x_type()) {}

void ResidualUnit::run(uint32_t rows, const Rows2d& x, const BlockScratch& scratch, const Laps& laps, StageClock* clock) const {
  const int64_t channels = x.ld;
  const Rows2d inner = {scratch.inner.data, OMNI_DTYPE_F32, channels};
  const bool wide_rows = narrow_.x_type() == OMNI_DTYPE_F32;
  const Rows2d narrowed = wide_rows ? inner : Rows2d{scratch.narrow.data, narrow_.x_type(), channels};
  act1_.run(rows, x, input_.fresh());
  clock->lap(laps.snake);
  wide_.run(rows, input_.first(), channels, inner.at(0), channels);
  clock->lap(laps.wide);
  input_.advance(rows);
  clock->lap(laps.history);
  act2_.run(rows, inner, narrowed);
  clock->lap(laps.snake);
  narrow_.run(rows, narrowed.at(0), channels, x.at(0), channels);
  clock->lap(laps.narrow);
}

void ResidualUnit::describe(std::vector<std::string>* lines) const {
  add_line(lines, kernel_line("snake", act1_.plan()));
  add_line(lines, wide_.describe("residual conv"));
  add_line(lines, narrow_.describe("residual 1x1"));
}

UpsampleBlock::UpsampleBlock(const ModelContext& context, const Shape& shape, StageClock* clock)
    : shape_(shape),
      label_("dec_block" + std::to_string(shape.index)),
      tconv_(make_conv(context, block_prefix(shape.index) + "1.conv", tconv_shape(shape), false, shape.most_rows, shape.rate)),
      input_(tconv_.x_type(), shape.inputs, tconv_.shape().history()),
      act_(context, block_prefix(shape.index) + "0", shape.inputs, tconv_.x_type()) {
  for (size_t i = 0; i < std::size(kDilations); ++i) {
    units_.emplace_back(context, block_prefix(shape.index) + std::to_string(2 + i), shape.outputs, kDilations[i],
                        shape.most_rows * shape.rate);
  }
  const auto stage = [&](const char* what) { return clock->stage("block" + std::to_string(shape.index) + " " + what); };
  tconv_lap_ = stage("transposed");
  laps_ = {snake_lap_ = stage("snake"), stage("conv k7"), stage("conv k1"), stage("history")};
}

void UpsampleBlock::place(Placement* placement) {
  input_.place(placement, shape_.most_rows);
  for (ResidualUnit& unit : units_) unit.place(placement);
  output_ = placement->rows(OMNI_DTYPE_F32, shape_.most_rows * shape_.rate, shape_.outputs);
}

void UpsampleBlock::reset() const {
  input_.reset();
  for (const ResidualUnit& unit : units_) unit.reset();
}

void UpsampleBlock::run(const Rows2d& x, uint32_t rows, int64_t position, const BlockScratch& scratch, StageClock* clock,
                        Observer* observer) const {
  const auto made = static_cast<uint32_t>(rows * shape_.rate);
  const auto see = [&](const char* what) {
    observe_rows(observer, label_ + what, position * shape_.rate, made, shape_.outputs, output_);
  };
  act_.run(rows, x, input_.fresh());
  observe_rows(observer, label_ + "_snake", position, rows, shape_.inputs, input_.fresh());
  clock->lap(snake_lap_);
  tconv_.run(rows, input_.first(), shape_.inputs, output_.at(0), tconv_.shape().outputs);
  input_.advance(rows);
  clock->lap(tconv_lap_);
  see("_tconv");
  for (size_t i = 0; i < units_.size(); ++i) {
    units_[i].run(made, output_, scratch, laps_, clock);
    see(i == 0 ? "_res0" : i == 1 ? "_res1" : "");
  }
}

int64_t UpsampleBlock::looks_back(int64_t outputs) const {
  for (const ResidualUnit& unit : units_) outputs += unit.history();
  return (outputs + shape_.rate - 1) / shape_.rate + input_.history();
}

size_t UpsampleBlock::state_bytes() const {
  size_t bytes = input_.bytes();
  for (const ResidualUnit& unit : units_) bytes += unit.state_bytes();
  return bytes;
}

uint64_t UpsampleBlock::weight_bytes() const {
  uint64_t bytes = act_.bytes() + tconv_.bytes();
  for (const ResidualUnit& unit : units_) bytes += unit.weight_bytes();
  return bytes;
}

void UpsampleBlock::describe(std::vector<std::string>* lines) const {
  add_line(lines, tconv_.describe("transposed conv"));
  for (const ResidualUnit& unit : units_) unit.describe(lines);
}

}  // namespace ref::tts
