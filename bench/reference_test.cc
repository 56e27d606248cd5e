// SPDX-License-Identifier: Apache-2.0
#include "bench/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/arms/arms.h"

namespace omnibench {
namespace {

Case gemv_case(int64_t n, int64_t k, int64_t m, omni_numerics numerics = OMNI_NUMERICS_GROUP) {
  Case c;
  c.op = "gemv";
  c.shape = {"x", n, k, 0, 7};
  c.m = m;
  c.group = 64;
  c.numerics = numerics;
  c.hot = true;
  return c;
}

// First codes and first outputs of PyTorch's operator for the golden 2048x2048 g128 matrix (seed 101).
TEST(Generator, MakesTheGoldenMatrix) {
  const Generator g{2048, 2048, 128, 101};
  const std::vector<int> codes = {13, 1, 1, 4, 11, 2, 2, 12, 11, 9, 15, 7, 10, 6, 4, 13};
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(g.code(0, static_cast<int64_t>(i)), codes[i]);
  const std::vector<uint16_t> x = g.activations(1);
  const std::vector<uint16_t> y = {16259, 15966, 48675, 49313, 16420, 49199, 16387, 49224};
  for (size_t n = 0; n < y.size(); ++n) {
    EXPECT_EQ(float_to_bf16(scalar_gemv(g, OMNI_NUMERICS_TORCH, x.data(), static_cast<int64_t>(n))), y[n]) << n;
  }
}

TEST(Reference, AcceptsOurArmsAndSeesOneFlippedBit) {
  const Pool pool(2);
  for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
    for (const int64_t n : {64, 80}) {
      Operands operands(gemv_case(n, 192, 3, numerics), pool);
      Reference reference(operands);
      const auto arm = make_linear_arm("omni", reference, {});
      arm->prepare();
      const Verification v = arm->verify();
      EXPECT_TRUE(v.checked);
      EXPECT_NE(v.text.find("all " + std::to_string(n) + " channels"), std::string::npos) << v.text;
      const Tolerance bits = numerics == OMNI_NUMERICS_TORCH ? Tolerance::kTorchBits : Tolerance::kGroupBits;
      uint16_t& one = operands.y()[2 * n + n - 1];
      one ^= 1;
      try {
        reference.compare_gemv(operands.y(), false, bits);
        FAIL() << "a flipped bit was not seen";
      } catch (const WrongOutput& error) {
        EXPECT_NE(std::string(error.what()).find("y[2][" + std::to_string(n - 1) + "]"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Reference, BoundsAcceptTheRightAndRefuseTheWrong) {
  const Pool pool(1);
  Operands operands(gemv_case(64, 256, 2), pool);
  Reference reference(operands);
  const auto arm = make_linear_arm("omni", reference, {});
  arm->prepare();
  arm->verify();
  for (const Tolerance t : {Tolerance::kBf16Weights, Tolerance::kInt8Activations}) {
    EXPECT_NO_THROW(reference.compare_gemv(operands.y(), false, t));
    uint16_t& one = operands.y()[64 + 5];
    const uint16_t kept = one;
    one = float_to_bf16(bf16_to_float(one) * 3 + 1);
    EXPECT_THROW(reference.compare_gemv(operands.y(), false, t), WrongOutput);
    one = 0x7fc0;  // NaN lies inside no bound
    EXPECT_THROW(reference.compare_gemv(operands.y(), false, t), WrongOutput);
    one = kept;
  }
}

TEST(Reference, LargeMatricesAreComparedOnSpreadBlocks) {
  const Pool pool(2);
  Operands operands(gemv_case(64 * 1024, 256, 16), pool);
  Reference reference(operands);
  const auto arm = make_linear_arm("omni", reference, {});
  arm->prepare();
  const Verification v = arm->verify();
  EXPECT_NE(v.text.find(" of 65536 channels"), std::string::npos) << v.text;
  operands.y()[64 * 1024 - 1] ^= 1;  // the last channel is always among them
  EXPECT_THROW(reference.compare_gemv(operands.y(), false, Tolerance::kGroupBits), WrongOutput);
}

TEST(Reference, PackAndDequantise) {
  const Pool pool(2);
  Case c = gemv_case(112, 96, 0);
  c.op = "pack";
  Operands pack_operands(c, pool);
  Reference pack_reference(pack_operands);
  const auto pack = make_pack_arm("omni", pack_reference, {});
  EXPECT_TRUE(pack->verify().checked);
  pack_operands.copy(0).codes[pack_operands.codes_bytes() - 1] ^= 0x10;
  EXPECT_THROW(pack_reference.compare_pack(pack_operands.copy(0).codes), WrongOutput);

  c.op = "dequant";
  Operands operands(c, pool);
  Reference reference(operands);
  const auto dequant = make_dequant_arm("omni", reference, {});
  EXPECT_TRUE(dequant->verify().checked);
  operands.copy(0).out[1] ^= 1;
  EXPECT_THROW(reference.compare_dequant(reinterpret_cast<const uint16_t*>(operands.copy(0).out)), WrongOutput);
}

TEST(Operands, RotationTakesTheCopyThatWasUsedLongestAgo) {
  const Pool pool(1);
  Case c = gemv_case(64, 64, 1);
  c.hot = false;
  c.shape.n = 1 << 16;
  c.shape.k = 2048;  // 64 MiB of codes: few copies
  const Operands probe(c, pool);
  EXPECT_GE(probe.copies(), 2U);
  Operands operands(c, pool);
  const Copy* first = &operands.next();
  for (size_t i = 1; i < operands.copies(); ++i) {
    const Copy& other = operands.next();
    EXPECT_NE(&other, first);
    EXPECT_TRUE(std::equal(other.codes, other.codes + operands.codes_bytes(), first->codes));
  }
  EXPECT_EQ(&operands.next(), first);
}

TEST(Limits, ReadArmMovesTheBytesOfTheCase) {
  const Pool pool(2);
  Operands operands(gemv_case(80, 192, 2), pool);
  const auto read = make_read_arm("read", operands);
  read->prepare();
  double spans = 0;
  for (const Span& span : operands.copy(0).spans) spans += static_cast<double>(span.bytes);
  EXPECT_EQ(read->info().bytes, spans);
  SteadyClock clock;
  EXPECT_GT(read->sample(clock, 10), 0);
}

TEST(Limits, PeakArmsRunOrAreRefused) {
  const Pool pool(1);
  const Operands operands(gemv_case(64, 64, 1), pool);
  for (const bool bf16 : {false, true}) {
    const auto peak = make_peak_arm("peak", operands, bf16);
    try {
      peak->prepare();
    } catch (const Refused&) {
      continue;
    }
    SteadyClock clock;
    const double ns = peak->sample(clock, 4) / 4;
    EXPECT_GT(peak->info().flops / ns, 0.1);     // GFLOP/s
    EXPECT_LT(peak->info().flops / ns, 5000.0);  // more would mean that the compiler threw the work away
  }
}

}  // namespace
}  // namespace omnibench
