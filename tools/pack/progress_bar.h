// SPDX-License-Identifier: Apache-2.0
// A bar on stderr, where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pack {

class ProgressBar {
 public:
  explicit ProgressBar(bool wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(const std::string& tensor, uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  bool active_;
  Clock::time_point start_ = Clock::now(), last_ = {};
};

}  // namespace pack
