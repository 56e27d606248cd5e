// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/arms/arms.h"
#include "bench/ops/linear.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

Case gemv_case(int64_t n, int64_t k, int64_t m, const std::string& variant = "group") {
  Case c;
  c.op = "w4a16";
  c.shape = {"x", {n, k}, 0, 7};
  c.m = m;
  c.group = 64;
  c.variant = variant;
  c.hot = true;
  return c;
}

/// The output of the first copy.
uint16_t* output(const Workload& w) { return w.first<uint16_t>(w.output_part()); }

Verification run_and_verify(Workload& workload) {
  const auto arm = make_our_arm("omni", workload, {});
  arm->prepare();
  return arm->verify();
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

TEST(Linear, AcceptsOurArmsAndSeesOneFlippedBit) {
  const Pool pool(2);
  for (const char* variant : {"group", "torch"}) {
    for (const int64_t n : {64, 80}) {
      const auto workload = op_of(gemv_case(n, 192, 3)).make(gemv_case(n, 192, 3, variant), pool);
      const Verification v = run_and_verify(*workload);
      EXPECT_TRUE(v.checked);
      EXPECT_NE(v.text.find("all " + std::to_string(n) + " channels"), std::string::npos) << v.text;
      uint16_t& one = output(*workload)[2 * n + n - 1];
      one ^= 1;
      try {
        workload->check_output();
        FAIL() << "a flipped bit was not seen";
      } catch (const WrongOutput& error) {
        EXPECT_NE(std::string(error.what()).find("y[2][" + std::to_string(n - 1) + "]"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Linear, BoundsAcceptTheRightAndRefuseTheWrong) {
  const Pool pool(1);
  const Case c = gemv_case(64, 256, 2);
  const auto workload = op_of(c).make(c, pool);
  run_and_verify(*workload);
  for (const char* how : {"bf16-weights", "int8-activations"}) {
    const auto compare = [&] { workload->compare(output(*workload), 64 * 2 * 2, false, how); };
    EXPECT_NO_THROW(compare());
    uint16_t& one = output(*workload)[64 + 5];
    const uint16_t kept = one;
    one = float_to_bf16(bf16_to_float(one) * 3 + 1);
    EXPECT_THROW(compare(), WrongOutput);
    one = 0x7fc0;  // NaN lies inside no bound
    EXPECT_THROW(compare(), WrongOutput);
    one = kept;
  }
  EXPECT_THROW(workload->compare(output(*workload), 64 * 2 * 2, false, "vibes"), std::runtime_error);
  EXPECT_THROW(workload->compare(output(*workload), 64 * 2, false, "bits"), std::runtime_error);  // too few bytes
}

TEST(Linear, LargeMatricesAreComparedOnSpreadBlocks) {
  const Pool pool(2);
  const Case c = gemv_case(64 * 1024, 256, 16);
  const auto workload = op_of(c).make(c, pool);
  const Verification v = run_and_verify(*workload);
  EXPECT_NE(v.text.find(" of 65536 channels"), std::string::npos) << v.text;
  output(*workload)[64 * 1024 - 1] ^= 1;  // the last channel is always among them
  EXPECT_THROW(workload->check_output(), WrongOutput);
}

// Every operation on a small case: our output is accepted, and one changed byte of it is not.
Case small_case(const Op& op) {
  Case c;
  c.op = op.name;
  c.shape = op.shapes.front();
  const std::vector<int64_t> small = {80, 96, 64, 128};
  for (size_t i = 0; i < op.sizes.size() && op.sizes.size() == 2; ++i) c.shape.sizes[i] = small[i];
  c.shape.name = "small";
  c.m = op.most_rows > 0 ? 3 : 0;
  c.group = op.group.empty() ? 0 : (op.group == "K" ? static_cast<uint32_t>(c.k()) : 32);
  c.hot = true;
  return c;
}

TEST(Ops, EveryOneAcceptsOursAndSeesAChangedByte) {
  const Pool pool(2);
  for (const Op& op : all_ops()) {
    if (op.only_workers) continue;
    for (const std::string& variant : op.variants.empty() ? std::vector<std::string>{""} : op.variants) {
      SCOPED_TRACE(op.name + " " + variant);
      Case c = small_case(op);
      c.variant = variant;
      const auto workload = op.make(c, pool);
      // Another arm before it, so that what works in place must start from its input again.
      const auto before = make_our_arm("before", *workload, {});
      SteadyClock clock;
      try {
        before->prepare();
        EXPECT_TRUE(before->verify().checked);
        before->sample(clock, 3);
        EXPECT_TRUE(run_and_verify(*workload).checked);
      } catch (const Refused& refusal) {
        EXPECT_EQ(variant, "fast") << refusal.what();  // AMX bf16: only where the machine has it
        continue;
      }
      for (const size_t at : {size_t{1}, workload->parts()[workload->output_part()].bytes - 1}) {
        uint8_t& byte = workload->first<uint8_t>(workload->output_part())[at];
        byte ^= 0x40;
        EXPECT_THROW(workload->check_output(), WrongOutput) << at;
        byte ^= 0x40;
      }
      EXPECT_NO_THROW(workload->check_output());
    }
  }
}

// A worker finds every operand that the documentation promises, with its bytes.
TEST(Ops, EveryOneWritesOperandsForWorkers) {
  const Pool pool(1);
  for (const Op& op : all_ops()) {
    if (op.only_workers) continue;
    Case c = small_case(op);
    if (!op.variants.empty()) c.variant = op.variants.front();
    const auto workload = op.make(c, pool);
    size_t files = 0;
    workload->write_operands([&](const char* name, const void* data, size_t bytes) {
      EXPECT_NE(std::string(name), "");
      EXPECT_TRUE(bytes == 0 || data != nullptr) << op.name << " " << name;
      files += bytes > 0 ? 1 : 0;
    });
    EXPECT_GE(files, 1U) << op.name;
  }
}

// Of a whole model this program has the read limit only.
TEST(Ops, ModelsHaveNoArmInThisProcess) {
  const Pool pool(1);
  for (const auto& [name, peer] : {std::pair{"model", "llama-q4_0"}, {"speech", "qwen-tts-bf16"}}) {
    Case c;
    c.op = name;
    c.shape = {"small", {16, 1}};
    const auto workload = op_of(c).make(c, pool);
    EXPECT_THROW(workload->runner({}), Refused);
    RunOptions options;
    std::vector<std::string> notes;
    const auto arms = make_arms(options, *workload, &notes);
    ASSERT_EQ(arms.size(), 1U);
    EXPECT_EQ(arms[0]->info().name, "read");
    EXPECT_EQ(arms[0]->info().bytes, 1 << 20);
    ASSERT_EQ(notes.size(), op_of(c).workers.size());
    EXPECT_NE(notes[0].find(std::string(peer) + " was left out"), std::string::npos) << notes[0];
  }
}

TEST(Workload, RotationTakesTheCopyThatWasUsedLongestAgo) {
  const Pool pool(1);
  Case c = gemv_case(1 << 16, 2048, 1);  // 64 MiB of codes: few copies
  c.hot = false;
  const auto workload = op_of(c).make(c, pool);
  EXPECT_GE(workload->copies(), 2U);
  const uint8_t* first = workload->next();
  for (size_t i = 1; i < workload->copies(); ++i) {
    const uint8_t* other = workload->next();
    EXPECT_NE(other, first);
    for (const size_t part : {kCodes, kScales}) {
      EXPECT_TRUE(std::equal(workload->data(other, part), workload->data(other, part) + workload->parts()[part].bytes,
                             workload->data(first, part)));
    }
    EXPECT_EQ(workload->data(other, kX), workload->data(first, kX));  // x does not rotate
  }
  EXPECT_EQ(workload->next(), first);
}

TEST(Limits, ReadArmMovesTheBytesOfTheCase) {
  const Pool pool(2);
  const Case c = gemv_case(80, 192, 2);
  const auto workload = op_of(c).make(c, pool);
  const auto read = make_read_arm("read", *workload);
  read->prepare();
  EXPECT_EQ(read->info().bytes, moved_bytes(c));
  SteadyClock clock;
  EXPECT_GT(read->sample(clock, 10), 0);
}

TEST(Limits, PeakArmsRunOrAreRefused) {
  const Pool pool(1);
  const Case c = gemv_case(64, 64, 1);
  const auto workload = op_of(c).make(c, pool);
  for (const char* which : {"peak-fma", "peak-bf16", "peak-vnni"}) {
    const auto peak = make_peak_arm("peak", *workload, which);
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
