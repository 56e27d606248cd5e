// SPDX-License-Identifier: Apache-2.0
// The operands of a case, in as many copies as a cold case rotates through, and the pool that every arm of ours runs on.
#ifndef OMNI_BENCH_OPERANDS_H
#define OMNI_BENCH_OPERANDS_H

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/generator.h"
#include "omni/omni.h"

namespace omnibench {

/// Throws with the status name and the library's text.
void check(omni_status status, const char* what);

/// A block of omni_packed_alloc.
class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] uint8_t* data() const { return static_cast<uint8_t*>(memory_.data); }
  [[nodiscard]] size_t bytes() const { return memory_.bytes; }
  [[nodiscard]] omni_page_kind pages() const { return memory_.pages; }

 private:
  omni_packed_memory memory_{};
};

/// A pool of the library with a fixed number of threads.
class Pool {
 public:
  explicit Pool(uint32_t threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  [[nodiscard]] const omni_parallel* parallel() const { return &parallel_; }
  [[nodiscard]] uint32_t threads() const { return parallel_.threads; }
  /// Calls task(i) for i in [0, count).
  void run(int64_t count, const std::function<void(int64_t)>& task) const;

 private:
  omni_pool* pool_ = nullptr;
  omni_parallel parallel_{};
};

/// Memory that one call touches, for the read arm.
struct Span {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
};

/// The case is beyond the memory of this machine.
struct DoesNotFit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One copy of what rotates: codes always, then what the operation has beside them.
struct Copy {
  uint8_t *codes = nullptr, *scales = nullptr, *source = nullptr, *out = nullptr;
  std::vector<Span> spans;  ///< everything that one call with this copy moves, x and y included
};

/**
 * x and y are one each: they have just been produced or are about to be used, so they are warm in real use, too. The weights (and
 * source and output of pack and dequant) rotate: every call takes the copy that was used longest ago, whichever arm used it.
 */
class Operands {
 public:
  Operands(const Case& c, const Pool& pool);

  [[nodiscard]] const Case& the_case() const { return case_; }
  [[nodiscard]] const Pool& pool() const { return pool_; }
  [[nodiscard]] const Generator& generator() const { return generator_; }
  [[nodiscard]] const omni_layout& layout() const { return layout_; }
  [[nodiscard]] size_t codes_bytes() const { return codes_bytes_; }
  [[nodiscard]] size_t scales_bytes() const { return scales_bytes_; }
  [[nodiscard]] size_t copies() const { return copies_.size(); }
  [[nodiscard]] std::string pages() const;
  /// The next copy of the rotation.
  const Copy& next() {
    cursor_ = cursor_ + 1 < copies_.size() ? cursor_ + 1 : 0;
    return copies_[cursor_];
  }
  [[nodiscard]] const Copy& copy(size_t index) const { return copies_[index]; }
  [[nodiscard]] const uint16_t* x() const { return reinterpret_cast<const uint16_t*>(x_.data()); }  ///< bf16 [M][K]
  [[nodiscard]] uint16_t* y() const { return reinterpret_cast<uint16_t*>(y_.data()); }              ///< bf16 [M][N]

 private:
  void fill_first();
  [[nodiscard]] std::vector<Span> spans_of(const Copy& copy) const;

  Case case_;
  const Pool& pool_;
  Generator generator_;
  omni_layout layout_{};
  size_t codes_bytes_ = 0, scales_bytes_ = 0;
  std::vector<Copy> copies_;
  size_t cursor_ = 0;
  Block block_;  ///< of all copies
  Block x_, y_;
};

/// Copies that a cold rotation needs when a call moves `moved` bytes of one and each takes `allocated` bytes: more than 1.25 times
/// all caches that could keep them, at least two, and no more than half of the available memory holds. Throws when not one fits.
int64_t copies_for(double moved, double allocated);
/// Rounded up to whole cache lines, so that copies behind each other never share one.
size_t align_to_line(size_t bytes);
/// Bytes that a rotation must exceed.
double cold_rotation_bytes();

}  // namespace omnibench
#endif
