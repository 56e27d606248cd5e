// SPDX-License-Identifier: Apache-2.0
// Bits that a software model executes: they count as hardware as long as tile permission is not refused, and no longer than asked.
#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/machine.h"
#include "tests/support/modelled_cpu.h"

namespace okl {
namespace {

using test::ModelledCpu;
using test::Permission;

TEST(ModelledCpu, BitsCountAsHardwareWhileItLives) {
  const IsaMask before = hardware_isa();
  {
    const ModelledCpu cpu;
    EXPECT_EQ(hardware_isa(), before | ModelledCpu::kModelled);
    EXPECT_EQ(current_machine().isa_hardware, before | ModelledCpu::kModelled);
    EXPECT_EQ(current_machine().isa & kIsaAmxBits, kIsaAmxBits);
    EXPECT_STREQ(current_machine().amx_reason, "");
    EXPECT_TRUE(amx_permission().granted) << amx_permission().reason;
    EXPECT_EQ(hardware_isa() & kIsaAmxBits, kIsaAmxBits);
  }
  EXPECT_EQ(amx_permission_if_requested(), nullptr);
  EXPECT_EQ(hardware_isa(), before);
}

TEST(ModelledCpu, ARefusalTakesTheTileBitsAndSaysWhy) {
  const std::pair<Permission, const char*> cases[] = {{Permission::kInvalid, "EINVAL"},
                                                      {Permission::kForbidden, "EPERM"},
                                                      {Permission::kSmallStacks, "ENOSPC"},
                                                      {Permission::kMaskedCpuid, "no AMX"}};
  for (const auto& [permission, word] : cases) {
    const ModelledCpu cpu(permission);
    EXPECT_EQ(hardware_isa() & kIsaAmxBits, kIsaAmxBits) << "nobody has asked yet";
    EXPECT_FALSE(amx_permission().granted);
    EXPECT_NE(amx_permission().reason.find(word), std::string::npos) << amx_permission().reason;
    EXPECT_EQ(hardware_isa() & kIsaAmxBits, 0U);
    EXPECT_EQ(current_machine().isa & kIsaAmxBits, 0U);
    EXPECT_EQ(current_machine().amx_reason, amx_permission().reason);
    EXPECT_EQ(hardware_isa() & OMNI_ISA_AVX_VNNI, IsaMask{OMNI_ISA_AVX_VNNI}) << "what is no tile instruction stays";
  }
}

}  // namespace
}  // namespace okl
