// SPDX-License-Identifier: Apache-2.0
#include "reference/core/describe.h"
#include "reference/spark/layer.h"

namespace ref::spark {
void Layer::describe(std::vector<std::string>* lines) const {
  const auto add = [&](std::string line) { add_line(lines, std::move(line)); };
  const auto add_linear = [&](const char* what, const Linear& part, omni_dtype rows) { add(linear_line(what, part, rows)); };
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
  add(kernel_line(attention, attention_plan_));
  const std::string rope = "rope of " + std::to_string(config_.rope(index_).rot) + " of " + std::to_string(config_.head_dim);
  add(kernel_line(rope, rope_plan_));
  if (gate_) add(kernel_line("head gate", gate_->plan()));
  add(kernel_line("geglu", geglu_plan_));
  add(kernel_line(fused_norm_ ? "norm, residual added" : "norm", attention_norm_->plan(fused_norm_)));
}

}  // namespace ref::spark
