// SPDX-License-Identifier: Apache-2.0
// A linear layer of a model: a packed matrix, its bias, and the plan that serves one row and many. Layers of one shape share a
// plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/backend.h"
#include "reference/core/expand.h"
#include "reference/core/model_weights.h"

namespace ref {

// Throws Error naming `name` when there are fewer bytes than the layout needs, or a permutation of another length.
void check_matrix_bytes(const std::string& name, const Matrix& matrix);

// How rows meet the weights.
struct RowPolicy {
  bool fp32 = false;            // rows stay fp32 everywhere
  bool quantise_for_w8 = true;  // w8s: rows are quantised (class exact), else real (W8A16; in fp32 the weights are expanded)
};

// What rows a matrix takes: bf16 where its kernels ask for them (tg4, W8A16) or where they lose nothing (bf16 weights, as the
// official flow); fp32 where they cost nothing (class exact, which quantises them, and fp32 weights). `must` says that there is no
// choice.
struct RowType {
  omni_dtype type;
  bool must;
};
RowType row_type(const Matrix& matrix, const RowPolicy& policy);
// One type for the rows that several matrices read.
omni_dtype common_row_type(std::initializer_list<const Matrix*> matrices, const RowPolicy& policy);

// What the output of a layer is.
struct LinearOutput {
  omni_dtype type = OMNI_DTYPE_F32;
  bool add = false;  // y += x W^T + bias, in fp32
};

// Plans by their question.
class LinearPlans {
 public:
  explicit LinearPlans(Backend& backend) : backend_(backend) {}
  const omni_plan* find(const omni_layout& weights, omni_numerics numerics, omni_dtype x_type, const LinearOutput& output,
                        bool bias);

 private:
  Backend& backend_;
  std::map<std::string, Plan> plans_;
};

class Linear {
 public:
  // Throws Error naming `name` for a matrix whose bytes do not fit its layout. `bias` is empty or has n elements.
  Linear(std::string name, const Matrix& matrix, std::vector<float> bias, omni_dtype x_type, const LinearOutput& output,
         const RowPolicy& policy, Backend& backend, LinearPlans& plans);

  // y[rows][n] of the output's type from x[rows][k] of the type of the constructor. Never allocates.
  void run(uint32_t rows, const void* x, int64_t ldx, void* y, int64_t ldy) const;

  const std::string& name() const { return name_; }
  const omni_layout& layout() const { return expanded_.matrix.layout; }
  // Bytes that one row reads.
  uint64_t bytes() const;
  // The kernels that serve it and why.
  std::string describe() const;

 private:
  std::string name_;
  ExpandedMatrix expanded_;
  std::vector<float> bias_;
  bool add_;
  const Backend* backend_;
  const omni_plan* plan_;
};

}  // namespace ref
