// SPDX-License-Identifier: Apache-2.0
// Pack kernels at their own contract: one block, any stride, codes above 15 reported wherever they stand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/repack/pack_kernel.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/reference_formats.h"

namespace okl::test {
namespace {

std::vector<const KernelRow*> rows() {
  std::vector<const KernelRow*> found;
  for (const KernelRow& row : registry()) {
    if (row.op == Op::kPack) found.push_back(&row);
  }
  return found;
}

class PackTiles : public testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    if ((GetParam()->required & ~hardware_isa()) != 0) GTEST_SKIP() << "needs " << isa_to_text(GetParam()->required);
    kernel_ = &GetParam()->as<Op::kPack>();
    run_ = kernel_->make(GetParam()->name);
    if (run_ == nullptr) GTEST_SKIP() << "executable memory is refused";
  }

  const PackKernel* kernel_ = nullptr;
  PackFn run_ = nullptr;
};

TEST_P(PackTiles, BlocksAtAnyStride) {
  for (const int64_t steps : {0, 1, 2, 5}) {
    const int64_t inputs = steps * kernel_->step;
    for (const int64_t extra : {0, 1, 63}) {
      for (const Flush flush : {Flush::kFront, Flush::kBack}) {
        const Codes codes = Codes::synthetic(64, inputs, 3);
        const std::vector<uint8_t> expected = pack_blocks(codes, 64, true, inputs);
        const int64_t ld = inputs + extra;
        GuardedBuffer in(static_cast<size_t>(63 * ld + inputs), flush, 1, 0xFF), out(expected.size(), flush, 16);
        for (int64_t c = 0; c < 64; ++c) {
          if (inputs > 0) std::memcpy(in.data() + c * ld, codes.values.data() + c * inputs, static_cast<size_t>(inputs));
        }
        in.make_read_only();
        const PackTile tile = {in.data(), ld, out.data(), inputs};
        EXPECT_EQ(run_(&tile), 0U);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.data())) << ld;
        EXPECT_TRUE(out.intact());
      }
    }
  }
}

TEST_P(PackTiles, AnyCodeAbove15IsReported) {
  const int64_t inputs = 2 * kernel_->step;
  Codes codes = Codes::synthetic(64, inputs, 4);
  std::vector<uint8_t> out(static_cast<size_t>(inputs * 32 + 64));
  const PackTile tile = {codes.values.data(), inputs, out.data() + (64 - reinterpret_cast<uintptr_t>(out.data()) % 64), inputs};
  for (size_t at = 0; at < codes.values.size(); ++at) {
    const uint8_t good = codes.values[at];
    codes.values[at] = static_cast<uint8_t>(16 << at % 4);
    ASSERT_NE(run_(&tile), 0U) << at;
    codes.values[at] = good;
  }
  EXPECT_EQ(run_(&tile), 0U);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PackTiles, testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(PackEdge, AgreesWithTheDefinition) {
  for (const int64_t inputs : {0, 1, 17, 31}) {
    const Codes codes = Codes::synthetic(64, inputs, 5);
    const std::vector<uint8_t> expected = pack_blocks(codes, 64, true, inputs);
    std::vector<uint8_t> out(expected.size());
    EXPECT_EQ(pack_edge({codes.values.data(), inputs, out.data(), inputs}), 0U);
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace okl::test
