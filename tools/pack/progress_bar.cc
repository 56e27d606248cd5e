// SPDX-License-Identifier: Apache-2.0
#include "tools/pack/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace pack {

ProgressBar::ProgressBar(bool wanted) : active_(wanted && ::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (active_) std::fputs("\r\033[K", stderr);  // the line is cleared: what follows stands where the bar stood
}

void ProgressBar::show(const std::string& tensor, uint64_t done, uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (!active_ || total == 0 || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? seconds * (1 - share) / share : 0;
  constexpr size_t kWidth = 24;
  const auto filled = static_cast<size_t>(share * kWidth);
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  fmt::print(stderr, "\r[{}] {:3.0f} %  {:.0f} s left  {:.40}\033[K", bar, 100 * share, left, tensor);
  std::fflush(stderr);
}

}  // namespace pack
