// SPDX-License-Identifier: Apache-2.0
// An arm: one way to do the work of a case. Arms report failure by throwing std::runtime_error; the harness records it.
#ifndef OMNI_BENCH_ARM_H
#define OMNI_BENCH_ARM_H

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/clock.h"

namespace omnibench {

enum class ArmRole {
  kContender,  ///< is ranked
  kRead,       ///< the limit of memory; never ranked
  kPeak        ///< the limit of arithmetic; never ranked
};

struct ArmInfo {
  std::string name;
  ArmRole role = ArmRole::kContender;
  std::string detail;  ///< kernel name, implementation, command: whatever says what ran
  double bytes = 0;    ///< moved by one call, 0 when unknown
  double flops = 0;    ///< of one call, 0 when unknown
};

/// What was compared before timing. `checked` false: nothing could be (limits, commands); a mismatch is thrown.
struct Verification {
  bool checked = false;
  std::string text;
};

/// Thrown by an arm that cannot honestly take part (e.g. a hot case that does not fit its cache): reported, no failure.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown by verify() for an output that is not what it must be.
struct WrongOutput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arm {
 public:
  virtual ~Arm() = default;
  [[nodiscard]] const ArmInfo& info() const { return info_; }
  /// Allocates and sets up; called once, before anything else, never timed.
  virtual void prepare() {}
  /// Runs once and compares the output. Throws with the first difference.
  virtual Verification verify() { return {false, "no output to compare"}; }
  /// Does the work `calls` times and returns how long all of them took, ns.
  virtual double sample(Clock& clock, int64_t calls) = 0;
  /// Whether many calls may be timed as one sample (a whole command is always one).
  [[nodiscard]] virtual bool repeats() const { return true; }
  /// Processes other than this one whose threads must rest before the next arm.
  [[nodiscard]] virtual std::vector<pid_t> processes() const { return {}; }

 protected:
  ArmInfo info_;
};

/// An arm in this process: one untimed call, then `calls` timed ones. The untimed call wakes sleeping pool threads (a futex wake
/// costs about 30 us) and, in a hot case, brings the operands back that other arms evicted.
class LoopArm : public Arm {
 public:
  double sample(Clock& clock, int64_t calls) final {
    before_sample();
    call();
    const int64_t from = clock.now_ns();
    for (int64_t i = 0; i < calls; ++i) call();
    const int64_t to = clock.now_ns();
    after_sample();
    return static_cast<double>(to - from);
  }

 protected:
  virtual void before_sample() {}
  virtual void call() = 0;
  virtual void after_sample() {}
};

}  // namespace omnibench
#endif
