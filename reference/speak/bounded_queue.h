// SPDX-License-Identifier: Apache-2.0
// A queue between two threads that holds so much and no more: who is faster waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace ref::speak {

template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits for room. False when the reader has gone: the item is dropped.
  bool push(Item item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return items_.size() < capacity_ || cancelled_; });
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    ready_.notify_one();
    return true;
  }

  // The writer makes no more; with an exception, because of that. What is queued is still read first.
  void finish(std::exception_ptr problem = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
      problem_ = std::move(problem);
    }
    ready_.notify_one();
  }

  // The reader takes no more.
  void cancel() {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      items_.clear();
    }
    room_.notify_one();
  }
  bool cancelled() const {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  // The next item; nothing at the end, where the writer's exception is thrown. `look` is called before each wait and every 20 ms
  // of it, outside of the lock: it may throw.
  template <typename Look>
  std::optional<Item> pop(const Look& look) {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        ready_.wait_for(lock, std::chrono::milliseconds(20), [&] { return !items_.empty() || finished_; });
        if (!items_.empty()) {
          std::optional<Item> item(std::move(items_.front()));
          items_.pop_front();
          lock.unlock();
          room_.notify_one();
          return item;
        }
        if (finished_) {
          if (problem_) std::rethrow_exception(problem_);
          return std::nullopt;
        }
      }
      look();
    }
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Item> items_;
  bool finished_ = false, cancelled_ = false;
  std::exception_ptr problem_;
};

}  // namespace ref::speak
