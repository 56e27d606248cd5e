// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "reference/core/error.h"

namespace ref {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { start(); }

void Sha256::start() {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw Error("SHA-256 is not available");
}

void Sha256::add(std::span<const std::byte> bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Sha256::finish() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  start();
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace ref
