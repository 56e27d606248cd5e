// SPDX-License-Identifier: Apache-2.0
// Where the time of a decoder goes: each lap is charged to the stage that it ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace ref::tts {

struct StageTime {
  std::string name;
  double seconds = 0;
};

class StageClock {
 public:
  // A stage by its name: operations of one name are charged together.
  size_t stage(const std::string& name) {
    for (size_t i = 0; i < times_.size(); ++i) {
      if (times_[i].name == name) return i;
    }
    times_.push_back({name, 0});
    return times_.size() - 1;
  }
  void start() { last_ = Clock::now(); }
  void lap(size_t stage) {
    const Clock::time_point now = Clock::now();
    times_[stage].seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  const std::vector<StageTime>& times() const { return times_; }
  void clear() {
    for (StageTime& time : times_) time.seconds = 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = {};
  std::vector<StageTime> times_;
};

}  // namespace ref::tts
