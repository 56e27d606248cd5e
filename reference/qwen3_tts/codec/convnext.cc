// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/convnext.h"

#include "reference/core/describe.h"

namespace ref::tts {
namespace {

constexpr int64_t kTaps = 7;
constexpr int64_t kWidening = 4;
constexpr float kEps = 1e-6F;

std::string prefix_of(int64_t index) { return "decoder.upsample." + std::to_string(index) + "."; }

const omni_plan* depthwise_plan(int64_t channels, PlanMap& plans) {
  omni_depthwise_query query = {};
  query.x_type = query.y_type = OMNI_DTYPE_F32;
  query.taps = kTaps;
  query.dilation = 1;
  query.n = channels;
  return plans.find("depthwise conv", omni_depthwise_select, query);
}

const omni_plan* norm_plan(int64_t channels, omni_dtype y_type, PlanMap& plans) {
  omni_layernorm_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = channels;
  query.eps = kEps;
  return plans.find("layer norm", omni_layernorm_select, query);
}

const omni_plan* gelu_plan(int64_t channels, omni_dtype y_type, PlanMap& plans) {
  omni_activation_query query = {};
  query.function = OMNI_ACTIVATION_GELU;
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = channels;
  return plans.find("gelu", omni_activation_select, query);
}

omni_dtype linear_rows(const ModelContext& context, const std::string& name, int64_t n, int64_t k) {
  return common_row_type({&context.weights.matrix(name, n, k)}, context.policy);
}

Linear biased_linear(const ModelContext& context, const std::string& name, int64_t n, int64_t k) {
  return context.linear(name, n, k, true, linear_rows(context, name, n, k));
}

}  // namespace

ConvNextStage::ConvNextStage(const ModelContext& context, int64_t index, int64_t channels, int64_t ratio, int64_t most_rows,
                             StageClock* clock)
    : label_("upsample" + std::to_string(index)),
      channels_(channels),
      ratio_(ratio),
      most_rows_(most_rows),
      backend_(&context.backend),
      tconv_(make_conv(context, prefix_of(index) + "0.conv", {channels, ratio * channels}, false, most_rows, ratio)),
      depthwise_(widen(context.weights.plain(prefix_of(index) + "1.dwconv.conv.weight", {kTaps, channels}))),
      depthwise_bias_(context.vector(prefix_of(index) + "1.dwconv.conv.bias", channels)),
      norm_(context.vector(prefix_of(index) + "1.norm.weight", channels)),
      norm_bias_(context.vector(prefix_of(index) + "1.norm.bias", channels)),
      gamma_(context.vector(prefix_of(index) + "1.gamma", channels)),
      wide_(biased_linear(context, prefix_of(index) + "1.pwconv1", kWidening * channels, channels)),
      narrow_(biased_linear(context, prefix_of(index) + "1.pwconv2", channels, kWidening * channels)),
      normed_type_(linear_rows(context, prefix_of(index) + "1.pwconv1", kWidening * channels, channels)),
      active_type_(linear_rows(context, prefix_of(index) + "1.pwconv2", channels, kWidening * channels)),
      depthwise_plan_(depthwise_plan(channels, context.plans)),
      norm_plan_(norm_plan(channels, normed_type_, context.plans)),
      gelu_plan_(gelu_plan(kWidening * channels, active_type_, context.plans)),
      upsampled_(OMNI_DTYPE_F32, channels, kTaps - 1),
      lap_(clock->stage(label_)) {}

void ConvNextStage::place(Placement* placement) {
  const int64_t rows = most_rows_ * ratio_;
  input_ = placement->rows(tconv_.x_type(), most_rows_, channels_);
  upsampled_.place(placement, rows);
  branch_ = placement->rows(OMNI_DTYPE_F32, rows, channels_);
  normed_ = placement->rows(normed_type_, rows, channels_);
  hidden_ = placement->rows(OMNI_DTYPE_F32, rows, kWidening * channels_);
  active_ = active_type_ == OMNI_DTYPE_F32 ? hidden_ : placement->rows(active_type_, rows, kWidening * channels_);
  output_ = placement->rows(OMNI_DTYPE_F32, rows, channels_);
}

// output = upsampled + gamma * branch.
void ConvNextStage::add_branch(int64_t rows) const {
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = upsampled_.fresh().f32(row), *y = branch_.f32(row);
    float* out = output_.f32(row);
    for (int64_t c = 0; c < channels_; ++c) out[c] = x[c] + gamma_[static_cast<size_t>(c)] * y[c];
  }
}

void ConvNextStage::run(const Rows2d& x, uint32_t rows, int64_t position, StageClock* clock, Observer* observer) const {
  const auto made = static_cast<uint32_t>(rows * ratio_);
  cast_rows(x, rows, input_);
  tconv_.run(rows, input_.at(0), channels_, upsampled_.fresh().at(0), ratio_ * channels_);
  observe_rows(observer, label_ + "_tconv", position * ratio_, made, channels_, upsampled_.fresh());

  omni_depthwise_args depthwise = {};
  depthwise.size = sizeof depthwise;
  depthwise.m = made;
  depthwise.x = upsampled_.first();
  depthwise.ldx = depthwise.ldy = channels_;
  depthwise.weights = depthwise_.data();
  depthwise.bias = depthwise_bias_.data();
  depthwise.y = branch_.at(0);
  depthwise.parallel = &backend_->parallel;
  check(omni_depthwise_run(depthwise_plan_, &depthwise), "depthwise conv");

  omni_layernorm_args norm = {};
  norm.size = sizeof norm;
  norm.m = made;
  norm.x = branch_.at(0);
  norm.ldx = norm.ldy = channels_;
  norm.weight = norm_.data();
  norm.bias = norm_bias_.data();
  norm.y = normed_.at(0);
  norm.parallel = &backend_->parallel;
  check(omni_layernorm_run(norm_plan_, &norm), "layer norm");

  wide_.run(made, normed_.at(0), normed_.ld, hidden_.at(0), hidden_.ld);
  omni_activation_args gelu = {};
  gelu.size = sizeof gelu;
  gelu.m = made;
  gelu.x = hidden_.at(0);
  gelu.y = active_.at(0);
  gelu.ldx = gelu.ldy = hidden_.ld;
  gelu.parallel = &backend_->parallel;
  check(omni_activation_run(gelu_plan_, &gelu), "gelu");
  narrow_.run(made, active_.at(0), active_.ld, branch_.at(0), branch_.ld);
  add_branch(made);
  upsampled_.advance(made);
  observe_rows(observer, label_ + "_convnext", position * ratio_, made, channels_, output_);
  clock->lap(lap_);
}

uint64_t ConvNextStage::weight_bytes() const {
  const size_t plain = depthwise_.size() + depthwise_bias_.size() + norm_.size() + norm_bias_.size() + gamma_.size();
  return tconv_.bytes() + wide_.bytes() + narrow_.bytes() + plain * sizeof(float);
}

void ConvNextStage::describe(std::vector<std::string>* lines) const {
  add_line(lines, tconv_.describe("transposed conv"));
  add_line(lines, kernel_line("depthwise conv", depthwise_plan_));
  add_line(lines, kernel_line("layer norm", norm_plan_));
  add_line(lines, linear_line("pwconv1", wide_, normed_type_));
  add_line(lines, kernel_line("gelu", gelu_plan_));
  add_line(lines, linear_line("pwconv2", narrow_, active_type_));
}

}  // namespace ref::tts
