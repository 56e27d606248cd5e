// SPDX-License-Identifier: Apache-2.0
// Pack and dequantise: the two operations that only move weights.
#include <algorithm>

#include "bench/arms/arms.h"

namespace omnibench {
namespace {

/// omni_repack has no cap of its own, so the process-wide one is set around each sample.
class IsaCap {
 public:
  explicit IsaCap(const std::string& tier) { check(omni_set_max_isa(tier.empty() ? nullptr : tier.c_str()), "omni_set_max_isa"); }
  ~IsaCap() { omni_set_max_isa(nullptr); }
  IsaCap(const IsaCap&) = delete;
  IsaCap& operator=(const IsaCap&) = delete;
};

class PackArm final : public LoopArm {
 public:
  PackArm(std::string name, Reference& reference, OurChoice choice)
      : reference_(reference), operands_(reference.operands()), choice_(std::move(choice)) {
    info_.name = std::move(name);
    info_.detail = choice_.max_isa.empty() ? "omni_repack" : "omni_repack at " + choice_.max_isa;
    info_.bytes = bytes_model(operands_.the_case()).total();
    const Case& c = operands_.the_case();
    args_.size = sizeof args_;
    args_.source_format = OMNI_FORMAT_CODES_U8;
    args_.destination_format = OMNI_FORMAT_TG4;
    args_.n = c.shape.n;
    args_.k = c.shape.k;
    args_.source_bytes = static_cast<size_t>(c.shape.n * c.shape.k);
    args_.destination_bytes = operands_.codes_bytes();
    args_.parallel = operands_.pool().parallel();
  }

  Verification verify() override {
    const Copy& copy = operands_.copy(0);
    std::fill(copy.codes, copy.codes + operands_.codes_bytes(), uint8_t{0xff});
    const IsaCap cap(choice_.max_isa);
    run(copy);
    return reference_.compare_pack(copy.codes);
  }

 protected:
  void before_sample() override { cap_ = std::make_unique<IsaCap>(choice_.max_isa); }
  void call() override { run(operands_.next()); }
  void after_sample() override { cap_.reset(); }

 private:
  void run(const Copy& copy) {
    args_.source = copy.source;
    args_.destination = copy.codes;
    const omni_status status = omni_repack(&args_);
    if (status != OMNI_OK) check(status, "omni_repack");
  }

  Reference& reference_;
  Operands& operands_;
  OurChoice choice_;
  std::unique_ptr<IsaCap> cap_;
  omni_repack_args args_{};
};

class DequantArm final : public LoopArm {
 public:
  DequantArm(std::string name, Reference& reference, OurChoice choice)
      : reference_(reference), operands_(reference.operands()), choice_(std::move(choice)) {
    info_.name = std::move(name);
    info_.detail = choice_.kernel.empty() ? "omni_dequantize" : choice_.kernel;
    if (!choice_.max_isa.empty()) info_.detail += " at " + choice_.max_isa;
    info_.bytes = bytes_model(operands_.the_case()).total();
    const Case& c = operands_.the_case();
    args_.size = sizeof args_;
    args_.out_type = OMNI_DTYPE_BF16;
    args_.order = OMNI_ORDER_NK;
    args_.layout = operands_.layout();
    args_.codes_bytes = operands_.codes_bytes();
    args_.scales_bytes = operands_.scales_bytes();
    args_.n1 = c.shape.n;
    args_.k1 = c.shape.k;
    args_.ld_out = c.shape.k;
    args_.kernel = choice_.kernel.empty() ? nullptr : choice_.kernel.c_str();
    args_.max_isa = choice_.max_isa.empty() ? nullptr : choice_.max_isa.c_str();
    args_.parallel = operands_.pool().parallel();
  }

  Verification verify() override {
    const Case& c = operands_.the_case();
    const Copy& copy = operands_.copy(0);
    std::fill(copy.out, copy.out + 2 * c.shape.n * c.shape.k, uint8_t{0xff});
    run(copy);
    return reference_.compare_dequant(reinterpret_cast<const uint16_t*>(copy.out));
  }

 protected:
  void call() override { run(operands_.next()); }

 private:
  void run(const Copy& copy) {
    args_.codes = copy.codes;
    args_.scales = copy.scales;
    args_.out = copy.out;
    const omni_status status = omni_dequantize(&args_);
    if (status != OMNI_OK) check(status, "omni_dequantize");
  }

  Reference& reference_;
  Operands& operands_;
  OurChoice choice_;
  omni_dequant_args args_{};
};

}  // namespace

std::unique_ptr<Arm> make_pack_arm(std::string name, Reference& reference, OurChoice choice) {
  return std::make_unique<PackArm>(std::move(name), reference, std::move(choice));
}

std::unique_ptr<Arm> make_dequant_arm(std::string name, Reference& reference, OurChoice choice) {
  return std::make_unique<DequantArm>(std::move(name), reference, std::move(choice));
}

}  // namespace omnibench
