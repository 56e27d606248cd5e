// SPDX-License-Identifier: Apache-2.0
#include "bench/golden/sha256.h"

#include <gtest/gtest.h>

namespace omni_golden {
namespace {

std::string of(const std::string& text) { return sha256(std::as_bytes(std::span(text.data(), text.size()))); }

TEST(Sha256, KnownMessages) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace omni_golden
