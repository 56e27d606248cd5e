// SPDX-License-Identifier: Apache-2.0
// For tests: a clock that moves only when told, and an arm whose calls move it.
#ifndef OMNI_BENCH_FAKE_ARM_H
#define OMNI_BENCH_FAKE_ARM_H

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/arm.h"

namespace omnibench {

class FakeClock final : public Clock {
 public:
  int64_t now_ns() override { return static_cast<int64_t>(time); }
  int64_t tick_ns() override { return tick; }
  double time = 0;
  int64_t tick = 1;
  int64_t samples = 0;  ///< timed so far by all arms
};

/// Each call takes cost(sample index over all arms, call) ns.
class FakeArm final : public LoopArm {
 public:
  using Cost = std::function<double()>;
  FakeArm(std::string name, FakeClock& clock, Cost cost, ArmRole role = ArmRole::kContender)
      : clock_(clock), cost_(std::move(cost)) {
    info_.name = std::move(name);
    info_.role = role;
    info_.bytes = 1000;
    info_.flops = 2000;
  }
  void prepare() override {
    if (!prepare_error.empty()) throw std::runtime_error(prepare_error);
  }
  Verification verify() override {
    if (!verify_error.empty()) throw WrongOutput(verify_error);
    return {true, "fake"};
  }
  std::string prepare_error, verify_error;
  int64_t total_calls = 0;

 protected:
  void call() override {
    clock_.time += cost_();
    ++total_calls;
  }
  void after_sample() override { ++clock_.samples; }

 private:
  FakeClock& clock_;
  Cost cost_;
};

}  // namespace omnibench
#endif
