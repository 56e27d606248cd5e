// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench/arms/arms.h"

namespace omnibench {
namespace {

class OurArm final : public LoopArm {
 public:
  OurArm(std::string name, Workload& workload, OurChoice choice) : workload_(workload), choice_(std::move(choice)) {
    info_.name = std::move(name);
    info_.bytes = moved_bytes(workload_.the_case());
    info_.flops = operations_of(workload_.the_case());
  }

  void prepare() override {
    try {
      runner_ = workload_.runner(choice_);
    } catch (const Refused& refusal) {
      // Class fast is AMX bf16 and nothing else.
      const bool amx = choice_.kernel.find("_amx") != std::string::npos || workload_.the_case().variant == "fast";
      throw Refused(amx ? fmt::format("not timed on hardware: {}", refusal.what()) : refusal.what());
    }
    info_.detail = runner_->detail;
  }

  Verification verify() override {
    workload_.spoil_output();  // what is not written shows
    runner_->begin();
    runner_->run(workload_.copy(0));
    runner_->end();
    return workload_.check_output();
  }

 protected:
  void before_sample() override { runner_->begin(); }
  void call() override { runner_->run(workload_.next()); }
  void after_sample() override { runner_->end(); }

 private:
  Workload& workload_;
  OurChoice choice_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace

std::unique_ptr<Arm> make_our_arm(std::string name, Workload& workload, OurChoice choice) {
  return std::make_unique<OurArm>(std::move(name), workload, std::move(choice));
}

std::string kernel_for(Workload& workload, const OurChoice& choice) {
  try {
    return workload.runner(choice)->kernel;
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace omnibench
