// SPDX-License-Identifier: Apache-2.0
// SHA-256, by OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace ref {

class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  std::string finish();  // 64 lower-case hexadecimal digits; the object is then as new

 private:
  void start();
  std::shared_ptr<evp_md_ctx_st> context_;
};

}  // namespace ref
