// SPDX-License-Identifier: Apache-2.0
// Generated kernels by their whole configuration: each is generated once, whoever asks at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace okl::jit {

struct GeneratedCode {
  const void* entry = nullptr;  // nullptr: generation failed or memory was refused
  size_t bytes = 0;
};

// Machine code as a generator left it: position independent, in plain memory.
using CodeBytes = std::vector<uint8_t>;

// The code for `key` under `name`; calls `generate` if no thread has yet, and makes others wait for it. An empty result of
// `generate` (or an exception) is reported as entry == nullptr, to those who waited too, and not cached. `generate` must not ask
// for its own key; other keys are fine. Thread-safe, and usable in forked children. Keys of different kernels never collide: the
// name is part of the key.
GeneratedCode find_or_generate(std::string_view name, std::span<const std::byte> key, const std::function<CodeBytes()>& generate);

// A trivially copyable configuration without padding is its own key.
template <typename Config>
requires std::has_unique_object_representations_v<Config> GeneratedCode
find_or_generate(std::string_view name, const Config& config, const std::function<CodeBytes()>& generate) {
  return find_or_generate(name, std::as_bytes(std::span(&config, 1)), generate);
}

// The first code generated under `name`, for disassembly; entry == nullptr when there is none.
GeneratedCode find_by_name(std::string_view name);

struct CacheStatistics {
  size_t kernels = 0, bytes = 0, generated = 0, hits = 0;
};
CacheStatistics cache_statistics();

}  // namespace okl::jit
