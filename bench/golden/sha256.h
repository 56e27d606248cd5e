// SPDX-License-Identifier: Apache-2.0
// SHA-256 of golden data, by OpenSSL's libcrypto. Header only, for programs and tests; link OpenSSL::Crypto.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace omni_golden {

/// As 64 hexadecimal digits, the way golden files hold it.
inline std::string sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("libcrypto refuses SHA-256");
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

}  // namespace omni_golden
