// SPDX-License-Identifier: Apache-2.0
// Pack and dequantise: the two operations that only move weights.
#include "bench/ops/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bench/generator.h"
#include "bench/ops/scalar.h"
#include "bench/ops/w4a16.h"

namespace omnibench {
namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kElements = int64_t{1} << 27;  // compared at most; else blocks spread over the matrix

/// omni_repack has no cap of its own, so the process-wide one is set around each sample.
class IsaCap {
 public:
  explicit IsaCap(const std::string& tier) { check(omni_set_max_isa(tier.empty() ? nullptr : tier.c_str()), "omni_set_max_isa"); }
  ~IsaCap() { omni_set_max_isa(nullptr); }
  IsaCap(const IsaCap&) = delete;
  IsaCap& operator=(const IsaCap&) = delete;
};

class MoveWorkload : public Workload {
 public:
  MoveWorkload(const Case& c, const Pool& pool) : Workload(c, pool), generator_{c.n(), c.k(), c.group, c.shape.seed} {
    const int64_t blocks = (c.n() + kBlock - 1) / kBlock;
    const int64_t wanted = std::clamp<int64_t>(kElements / (kBlock * c.k()), std::min<int64_t>(2, blocks), blocks);
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t block = wanted < blocks ? i * (blocks - 1) / (wanted - 1) : i;
      ranges_.emplace_back(block * kBlock, std::min(c.n(), (block + 1) * kBlock));
      channels_ += ranges_.back().second - ranges_.back().first;
    }
  }

  void write_operands(const FileWriter& file) override {
    std::vector<uint8_t> codes(static_cast<size_t>(generator_.n * generator_.k));
    fill_codes(generator_, pool(), codes.data());
    const std::vector<uint16_t> scales = generator_.scales();
    file("codes", codes.data(), codes.size());
    file("scales", scales.data(), scales.size() * 2);
  }

 protected:
  [[nodiscard]] std::string coverage() const {
    return channels_ == generator_.n ? fmt::format("all {} channels", channels_)
                                     : fmt::format("{} of {} channels", channels_, generator_.n);
  }
  void check_bytes(size_t bytes) const {
    const size_t wanted = parts()[output_part()].bytes;
    if (bytes != wanted) throw std::runtime_error(fmt::format("the output has {} bytes, {} expected", bytes, wanted));
  }

  Generator generator_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;
  int64_t channels_ = 0;
};

enum PackPart : size_t { kSource, kPacked };

class PackRunner final : public Runner {
 public:
  PackRunner(const Workload& workload, OurChoice choice) : workload_(workload), choice_(std::move(choice)) {
    detail = choice_.max_isa.empty() ? "omni_repack" : "omni_repack at " + choice_.max_isa;
    const Case& c = workload.the_case();
    args_.size = sizeof args_;
    args_.source_format = OMNI_FORMAT_CODES_U8;
    args_.destination_format = OMNI_FORMAT_TG4;
    args_.n = c.n();
    args_.k = c.k();
    args_.source_bytes = workload.parts()[kSource].bytes;
    args_.destination_bytes = workload.parts()[kPacked].bytes;
    args_.parallel = workload.pool().parallel();
  }
  void begin() override { cap_ = std::make_unique<IsaCap>(choice_.max_isa); }
  void end() override { cap_.reset(); }
  void run(const uint8_t* copy) override {
    args_.source = workload_.data(copy, kSource);
    args_.destination = workload_.data(copy, kPacked);
    const omni_status status = omni_repack(&args_);
    if (status != OMNI_OK) check(status, "omni_repack");
  }

 private:
  const Workload& workload_;
  OurChoice choice_;
  std::unique_ptr<IsaCap> cap_;
  omni_repack_args args_{};
};

class Pack final : public MoveWorkload {
 public:
  Pack(const Case& c, const Pool& pool) : MoveWorkload(c, pool) {
    make_copies([&] {
      fill_codes(generator_, pool, first<uint8_t>(kSource));
      std::memset(first<uint8_t>(kPacked), 0, parts()[kPacked].bytes);  // touch the pages
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<PackRunner>(*this, choice); }

  Verification compare(const void* output, size_t bytes, bool /*f32*/, const std::string& /*how*/) override {
    check_bytes(bytes);
    const auto* packed = static_cast<const uint8_t*>(output);
    const Generator& w = generator_;
    const int64_t row_inputs = (w.k + 31) / 32 * 32;  // padded with code 8
    const auto code = [&](int64_t channel, int64_t input) -> uint8_t {
      return channel < w.n && input < w.k ? w.code(channel, input) : 8;
    };
    for (const auto& [n0, n1] : ranges_) {
      const int64_t width = std::min(kBlock, (w.n + 15) / 16 * 16 - n0);
      const uint8_t* at = packed + n0 * row_inputs / 2;
      for (int64_t k = 0; k < row_inputs; ++k) {
        for (int64_t j = 0; j < width / 2; ++j, ++at) {
          const int64_t low = n0 + (width == kBlock ? j : 2 * j);
          const int64_t high = width == kBlock ? low + 32 : low + 1;
          const auto want = static_cast<uint8_t>(code(low, k) | code(high, k) << 4);
          if (*at != want) {
            throw WrongOutput(
                fmt::format("wrong output: channels {}, {} input {}: {:#04x}, expected {:#04x}", low, high, k, *at, want));
          }
        }
      }
    }
    return {true, fmt::format("byte-equal to the layout's definition, {}", coverage())};
  }
};

enum DequantPart : size_t { kCodesIn, kScalesIn, kOut };

class DequantRunner final : public Runner {
 public:
  DequantRunner(const Workload& workload, OurChoice choice) : workload_(workload), choice_(std::move(choice)) {
    kernel = choice_.kernel;
    detail = kernel.empty() ? "omni_dequantize" : kernel;
    if (!choice_.max_isa.empty()) detail += " at " + choice_.max_isa;
    const Case& c = workload.the_case();
    args_.size = sizeof args_;
    args_.out_type = OMNI_DTYPE_BF16;
    args_.order = OMNI_ORDER_NK;
    args_.layout = layout_of(c, {});
    args_.codes_bytes = workload.parts()[kCodesIn].bytes;
    args_.scales_bytes = workload.parts()[kScalesIn].bytes;
    args_.n1 = c.n();
    args_.k1 = c.k();
    args_.ld_out = c.k();
    args_.kernel = choice_.kernel_or_null();
    args_.max_isa = choice_.max_isa_or_null();
    args_.parallel = workload.pool().parallel();
  }
  void run(const uint8_t* copy) override {
    args_.codes = workload_.data(copy, kCodesIn);
    args_.scales = workload_.data(copy, kScalesIn);
    args_.out = workload_.data(copy, kOut);
    const omni_status status = omni_dequantize(&args_);
    if (status == OMNI_ERR_NO_KERNEL) throw Refused(omni_last_error());
    if (status != OMNI_OK) check(status, "omni_dequantize");
  }

 private:
  const Workload& workload_;
  OurChoice choice_;
  omni_dequant_args args_{};
};

class Dequant final : public MoveWorkload {
 public:
  Dequant(const Case& c, const Pool& pool) : MoveWorkload(c, pool) {
    make_copies([&] {
      pack_tg4(generator_, pool, first<uint8_t>(kCodesIn), parts()[kCodesIn].bytes);
      const std::vector<uint16_t> scales = generator_.scales();
      std::memcpy(first<uint8_t>(kScalesIn), scales.data(), parts()[kScalesIn].bytes);
      std::memset(first<uint8_t>(kOut), 0, parts()[kOut].bytes);  // touch the pages
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<DequantRunner>(*this, choice); }

  Verification compare(const void* output, size_t bytes, bool /*f32*/, const std::string& /*how*/) override {
    check_bytes(bytes);
    const auto* out = static_cast<const uint16_t*>(output);
    for (const auto& [n0, n1] : ranges_) {
      for (int64_t n = n0; n < n1; ++n) {
        for (int64_t k = 0; k < generator_.k; ++k) {
          const uint16_t want = scalar_dequant(generator_, n, k);
          const uint16_t got = out[n * generator_.k + k];
          if (got != want) throw WrongOutput(fmt::format("wrong output: w[{}][{}] = {:#06x}, expected {:#06x}", n, k, got, want));
        }
      }
    }
    return {true, fmt::format("bit-equal to bf16((q - 8) * s + z), {}", coverage())};
  }
};

}  // namespace

std::vector<Part> pack_parts(const Case& c) {
  return {{"source", static_cast<size_t>(c.n() * c.k()), true}, {"codes", linear_parts(c, {})[kCodes].bytes, true}};
}

std::unique_ptr<Workload> make_pack(const Case& c, const Pool& pool) { return std::make_unique<Pack>(c, pool); }

std::vector<Part> dequant_parts(const Case& c) {
  const std::vector<Part> linear = linear_parts(c, {});
  return {linear[kCodes], linear[kScales], {"out", static_cast<size_t>(c.n() * c.k() * 2), true}};
}

std::unique_ptr<Workload> make_dequant(const Case& c, const Pool& pool) { return std::make_unique<Dequant>(c, pool); }

}  // namespace omnibench
