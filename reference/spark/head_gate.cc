// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/head_gate.h"

namespace ref::spark {

HeadGate::HeadGate(const Config& config, const Plain& weights, std::vector<float> bias, omni_dtype x_type, omni_dtype value_type,
                   Plans& plans)
    : heads_(static_cast<uint32_t>(config.heads)), bias_(std::move(bias)) {
  omni_headgate_query query = {};
  query.size = sizeof query;
  query.x_type = static_cast<uint16_t>(x_type);
  query.weight_type = weights.type == OMNI_DTYPE_BF16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
  query.value_type = static_cast<uint16_t>(value_type);
  query.activation = config.gate_silu ? OMNI_HEADGATE_SILU : OMNI_HEADGATE_SIGMOID;
  query.heads = heads_;
  query.k = config.hidden;
  query.head_dim = config.head_dim;
  std::vector<float> wide;
  const void* source = weights.bytes.data();
  if (weights.type == OMNI_DTYPE_F16) {
    wide = widen(weights);
    source = wide.data();
  }
  size_t bytes = 0;
  check(omni_headgate_packed_size(&query, &bytes), "head gate");
  packed_ = Memory(bytes, OMNI_ALLOC_PLAIN);
  check(omni_headgate_pack(&query, source, config.hidden, packed_.data(), bytes), "head gate");
  plan_ = plans.gate(query);
}

void HeadGate::run(uint32_t rows, const std::byte* x, int64_t ldx, std::byte* values, int64_t ld_values, float* gates,
                   const Backend& backend) const {
  omni_headgate_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.x = x;
  args.ldx = ldx;
  args.weights = packed_.data();
  args.weights_bytes = packed_.size();
  args.bias = bias_.empty() ? nullptr : bias_.data();
  args.gates = gates;
  args.ld_gates = heads_;
  args.values = values;
  args.ld_values = ld_values;
  args.out = values;
  args.ld_out = ld_values;
  args.parallel = &backend.parallel;
  check(omni_headgate_run(plan_, &args), "head gate");
}

}  // namespace ref::spark
