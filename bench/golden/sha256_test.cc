// SPDX-License-Identifier: Apache-2.0
#include "bench/golden/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace omni_golden {
namespace {

std::string of(const std::string& text) { return sha256(std::as_bytes(std::span(text.data(), text.size()))); }

TEST(Sha256, KnownMessages) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PartsOfAMessageAddUp) {
  const std::string text(300, 'x');
  for (const size_t part : {1, 63, 64, 65, 128, 299}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += part) {
      const std::string piece = text.substr(at, part);
      hash.update(std::as_bytes(std::span(piece.data(), piece.size())));
    }
    EXPECT_EQ(hash.hex(), of(text)) << part;
  }
}

}  // namespace
}  // namespace omni_golden
