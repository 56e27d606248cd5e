// SPDX-License-Identifier: Apache-2.0
// When a worker that was woken onto the caller's processor stays runnable instead of sleeping again. docs/threads.md says why.
#pragma once

#include <atomic>
#include <cstdint>

namespace okl {

// Linux moves a waiting thread to an idle processor from its timer tick: 10.5 to 11.3 ms after the wake-up at 250 ticks a second.
inline constexpr uint64_t kLongestStayMicroseconds = 12'000;
// Nothing moves where no processor is idle, and the stay is the caller's loss: 6 % of the first pause, 0.4 % of the longest, 3 s.
inline constexpr uint64_t kFirstPauseInStays = 16;
inline constexpr uint64_t kLongestPauseInStays = 256;

// Of all workers of a pool one stays at a time: several would share the processor with the caller.
class Staying {
 public:
  explicit Staying(uint64_t ticks_per_microsecond) : longest_ticks_(kLongestStayMicroseconds * ticks_per_microsecond) {}

  // True: the worker may stay, for at most longest_ticks(), and calls end().
  bool begin(uint64_t now) {
    if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return false;
    if (ended_ == 0 || now - ended_ >= pause_ * longest_ticks_) return true;
    busy_.store(false, std::memory_order_release);
    return false;
  }

  // The first failure after a success pauses as the success does, each further one twice as long.
  void end(uint64_t now, bool moved) {
    pause_ = moved || !failed_ ? kFirstPauseInStays : pause_ < kLongestPauseInStays ? 2 * pause_ : pause_;
    failed_ = !moved;
    ended_ = now;
    busy_.store(false, std::memory_order_release);
  }

  // Of a forked child, whose parent's worker may have been staying.
  void reset() { busy_.store(false, std::memory_order_relaxed); }

  uint64_t longest_ticks() const { return longest_ticks_; }

 private:
  const uint64_t longest_ticks_;
  std::atomic<bool> busy_ = false;
  bool failed_ = false;  // guarded by busy_, and the next two
  uint64_t ended_ = 0;   // 0: none has been yet
  uint64_t pause_ = kFirstPauseInStays;
};

}  // namespace okl
