// SPDX-License-Identifier: Apache-2.0
// The random stream of a request: mt19937 as PyTorch's CPU generator uses it, so that seeds can be compared with PyTorch.
#pragma once

#include <cstdint>
#include <random>

namespace ref {

class Generator {
 public:
  // As torch.Generator().manual_seed(seed): only the low 32 bits count.
  explicit Generator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  // An exponential variate of rate 1, as torch's exponential_ makes it for fp32: two words, u = (first:second mod 2^53) / 2^53,
  // then float(-log1p(-u)), log1p of SLEEF in double, whose bits no processor changes.
  float exponential();
  // Leaves out `count` of them.
  void skip_exponentials(uint64_t count) { engine_.discard(2 * count); }

 private:
  std::mt19937 engine_;  // the standard fixes its stream
};

}  // namespace ref
