// SPDX-License-Identifier: Apache-2.0
// Dequantisation kernels at their own contract: one block, one portion, every configuration, streaming stores included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/dequant/dequant_kernel.h"
#include "kernels/format/bf16.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/synthetic.h"

namespace okl::test {
namespace {

std::vector<const KernelRow*> rows() {
  std::vector<const KernelRow*> found;
  for (const KernelRow& row : registry()) {
    if (row.op == Op::kDequant) found.push_back(&row);
  }
  return found;
}

class DequantTiles : public testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    if ((GetParam()->required & ~hardware_isa()) != 0) GTEST_SKIP() << "needs " << isa_to_text(GetParam()->required);
  }
};

// `special`: which of the 64 (scale, zero) values is a NaN, an odd one an infinity; kNone or kMany of them.
constexpr int kNone = -1, kMany = -2;

void check_tile(const KernelRow& row, const DequantConfig& config, int64_t inputs, int special) {
  const DequantKernel& kernel = row.as<Op::kDequant>();
  const DequantFn run = kernel.make(config, row.name);
  if (run == nullptr) GTEST_SKIP() << "executable memory is refused";
  const bool by_input = config.order == OMNI_ORDER_KN, wide = config.scale_type == OMNI_DTYPE_F32;
  const int64_t element = config.out_type == OMNI_DTYPE_F32 ? 4 : 2;
  const int64_t out_rows = by_input ? inputs : 64, width = by_input ? 64 : inputs;
  // Streaming wants multiples of 64 bytes; otherwise rows start anywhere.
  const int64_t ld = (width * element + 63) / 64 * 64 + (config.streaming != 0 ? 64 : element);
  for (const Flush flush : {Flush::kFront, Flush::kBack}) {
    const size_t alignment = config.streaming != 0 ? 64 : static_cast<size_t>(element);
    GuardedBuffer codes(static_cast<size_t>(inputs * 32), flush, 16), scales(64 * (wide ? 8 : 4), flush, wide ? 4 : 2),
        out(static_cast<size_t>((out_rows - 1) * ld + width * element), flush, alignment);
    for (size_t i = 0; i < codes.size(); ++i) codes.data()[i] = static_cast<uint8_t>(splitmix64(i));
    std::vector<float> reals(128);
    for (size_t i = 0; i < 128; ++i) {
      reals[i] = bf16_to_float(synthetic_scale_zero(7, 64, 0, static_cast<int64_t>(i)).zero);
      if (static_cast<int>(i) == special || (special == kMany && i % 9 == 0)) {
        reals[i] = std::bit_cast<float>(i % 2 == 0 ? 0xFF910000U : 0x7F800000U);
      }
      if (wide) {
        scales.as<float>()[i] = reals[i];
      } else {
        scales.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(reals[i]) >> 16);
      }
    }
    const DequantTile tile = {codes.data(), scales.data(), out.data(), ld, inputs};
    run(&tile);
    ASSERT_TRUE(out.intact() && codes.intact() && scales.intact()) << row.name;
    for (int64_t c = 0; c < 64; ++c) {
      for (int64_t i = 0; i < inputs; ++i) {
        const uint8_t byte = codes.data()[i * 32 + c % 32];
        float value = std::fma(static_cast<float>((c < 32 ? byte & 15 : byte >> 4) - 8), reals[static_cast<size_t>(2 * c)],
                               reals[static_cast<size_t>(2 * c + 1)]);
        if (std::isnan(value)) value = std::bit_cast<float>(kF32NaN);
        const uint32_t expected = element == 4 ? std::bit_cast<uint32_t>(value) : bf16_round_ieee(value);
        uint32_t found = 0;
        std::memcpy(&found, out.data() + (by_input ? i * ld + c * element : c * ld + i * element), static_cast<size_t>(element));
        ASSERT_EQ(found, expected) << row.name << ": channel " << c << ", input " << i;
      }
    }
    // Between the rows nothing is written.
    for (int64_t r = 0; r + 1 < out_rows; ++r) {
      for (int64_t at = width * element; at < ld; ++at) ASSERT_EQ(out.data()[r * ld + at], 0xA5) << row.name;
    }
  }
}

TEST_P(DequantTiles, EveryConfiguration) {
  const DequantKernel& kernel = GetParam()->as<Op::kDequant>();
  for (const omni_dtype scale_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const omni_dtype out_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const omni_order order : {OMNI_ORDER_NK, OMNI_ORDER_KN}) {
        for (const uint16_t streaming : {0, 1}) {
          if (streaming == 1 && !kernel.streams) continue;
          for (const int64_t inputs : {int64_t{32}, int64_t{96}, kDequantInputs}) {
            for (const int special : {kNone, kMany, 0, 1, 62, 63, 64, 126, 127}) {
              check_tile(
                  *GetParam(),
                  {static_cast<uint16_t>(scale_type), static_cast<uint16_t>(out_type), static_cast<uint16_t>(order), streaming},
                  inputs, special);
              if (HasFatalFailure() || IsSkipped()) return;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, DequantTiles, testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace okl::test
