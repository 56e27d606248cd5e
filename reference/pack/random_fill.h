// SPDX-License-Identifier: Apache-2.0
// Contents of synthetic models: random codes and values that depend on the tensor's name and on nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "omni/omni.h"
#include "reference/pack/plan.h"

namespace ref {

class RandomFill {
 public:
  explicit RandomFill(const std::string& tensor);
  // Every byte equally likely. Successive calls go on where the last one stopped; whole multiples of 8 bytes but for the last.
  void bytes(std::span<std::byte> out);
  // Uniform values of this mean and deviation.
  void values(std::span<std::byte> out, omni_dtype type, double mean, double deviation);

 private:
  uint64_t next();

  uint64_t state_;
};

// The scale that gives random codes of this layout the deviation.
float random_scale(const omni_layout& layout, double deviation);

}  // namespace ref
