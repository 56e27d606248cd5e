// SPDX-License-Identifier: Apache-2.0
// Pages of mapped files: what was read is let go, what will be read is asked for.
#pragma once

#include <cstddef>
#include <span>

namespace ref {

// Lets the pages of a mapping go, as far as they lie in `bytes` as a whole: they count as resident memory although they are cache.
void release_pages(std::span<const std::byte> bytes);
// Asks for them ahead.
void request_pages(std::span<const std::byte> bytes);

}  // namespace ref
