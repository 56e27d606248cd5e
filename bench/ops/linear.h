// SPDX-License-Identifier: Apache-2.0
// y = x * W^T, whatever W is stored in. What outputs must be has two independent sources: the library's portable tier (for every
// bit of every channel that is compared) and the scalar transcription of docs/numerics.md (which checks that tier on a few
// channels).
#ifndef OMNI_BENCH_OPS_LINEAR_H
#define OMNI_BENCH_OPS_LINEAR_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/ops/op.h"

namespace omnibench {

/// How the library is asked.
struct LinearForm {
  omni_format format = OMNI_FORMAT_TG4;
  omni_numerics numerics = OMNI_NUMERICS_GROUP;
  omni_dtype x_type = OMNI_DTYPE_BF16;
  omni_dtype scale_type = OMNI_DTYPE_BF16;
  uint16_t flags = 0;  ///< OMNI_LAYOUT_* that are the caller's choice
};

enum LinearPart : size_t { kCodes, kScales, kX, kY };

omni_layout layout_of(const Case& c, const LinearForm& form);
std::vector<Part> linear_parts(const Case& c, const LinearForm& form);
/// 2 * M * N * K.
double linear_operations(const Case& c);
/// gate_up, down, q_k_v, o, head: the projections of the model that the library is tuned for.
const std::vector<Shape>& projections();

class LinearWorkload : public Workload {
 public:
  std::unique_ptr<Runner> runner(const OurChoice& choice) override;
  std::unique_ptr<Arm> peer(const std::string& arm, std::string name) override;
  Verification compare(const void* output, size_t bytes, bool f32, const std::string& how) override;

  [[nodiscard]] const LinearForm& form() const { return form_; }
  [[nodiscard]] const omni_layout& layout() const { return layout_; }
  [[nodiscard]] const void* x() const { return data(copy(0), kX); }
  [[nodiscard]] uint16_t* y() const { return first<uint16_t>(kY); }
  [[nodiscard]] double x_value(int64_t m, int64_t k) const;

  /// The exact value of a weight, and its rounding to bf16 as a peer with bf16 weights stores it.
  [[nodiscard]] virtual double weight(int64_t n, int64_t k) const = 0;
  [[nodiscard]] virtual uint16_t weight_bf16(int64_t n, int64_t k) const = 0;

 protected:
  LinearWorkload(const Case& c, const Pool& pool, const LinearForm& form);
  /// fp32 result of one output, straight from the contract of `numerics`.
  [[nodiscard]] virtual float scalar(omni_numerics numerics, int64_t m, int64_t n) const = 0;
  /// Other classes whose bits a peer may have: the class by its word.
  [[nodiscard]] virtual omni_numerics numerics_of(const std::string& how) const;
  void fill_x();

 private:
  const std::vector<uint16_t>& expected(omni_numerics numerics);
  void compare_bits(const void* y, bool f32, omni_numerics numerics);
  void compare_bound(const void* y, bool f32, const std::string& how);

  LinearForm form_;
  omni_layout layout_{};
  std::vector<std::pair<int64_t, int64_t>> ranges_;  ///< channels [first, second) that are compared
  int64_t channels_ = 0;
  std::map<int, std::vector<uint16_t>> expected_;  ///< by class: bf16 bits [channel position][M]
};

/// oneDNN's matmul on its own packed weights: bf16, or fp32 where x is.
std::unique_ptr<Arm> make_onednn_arm(std::string name, LinearWorkload& workload);
/// The same on int8 weights with one scale a channel and rows quantised before the call; refused for other groups.
std::unique_ptr<Arm> make_onednn_int8_arm(std::string name, LinearWorkload& workload);

}  // namespace omnibench
#endif
