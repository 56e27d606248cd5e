// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "reference/spark/layer.h"

namespace ref::spark {
namespace {

std::string kernel_line(const char* what, const omni_plan* plan) {
  omni_plan_info info = {};
  info.size = sizeof info;
  check(omni_plan_get_info(plan, &info), what);
  return std::string(what) + ": " + info.kernel + " (" + info.reason + ")";
}

const char* type_name(omni_dtype type) { return type == OMNI_DTYPE_F32 ? "fp32" : "bf16"; }

}  // namespace

void Layer::describe(std::vector<std::string>* lines) const {
  const auto add = [&](std::string line) {
    for (const std::string& known : *lines) {
      if (known == line) return;  // another layer has said it
    }
    lines->push_back(std::move(line));
  };
  const auto add_linear = [&](const char* what, const Linear& part, omni_dtype rows) {
    add(std::string(what) + " (" + type_name(rows) + " rows) " + part.describe());
  };
  add_linear("q_k_v_proj", *qkv_, attention_norm_->type());
  add_linear("out_proj", *out_, attention_type_);
  if (gate_up_.size() == 1) {
    add_linear("gate_up_proj", gate_up_[0], feed_norm_->type());
  } else {
    add_linear("gate_proj", gate_up_[0], feed_norm_->type());
    add_linear("up_proj", gate_up_[1], feed_norm_->type());
  }
  add_linear("down_proj", *down_, product_type_);
  const bool sliding = config_.sliding[static_cast<size_t>(index_)] && config_.window.has_value();
  const std::string attention = sliding ? "attention, window " + std::to_string(*config_.window) : "attention, full";
  add(kernel_line(attention.c_str(), attention_plan_));
  const std::string rope = "rope of " + std::to_string(config_.rope(index_).rot) + " of " + std::to_string(config_.head_dim);
  add(kernel_line(rope.c_str(), rope_plan_));
  if (gate_) add(kernel_line("head gate", gate_->plan()));
  add(kernel_line("geglu", geglu_plan_));
  add(kernel_line(fused_norm_ ? "norm, residual added" : "norm", attention_norm_->plan(fused_norm_)));
}

}  // namespace ref::spark
