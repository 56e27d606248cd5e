// SPDX-License-Identifier: Apache-2.0
// The two limits: how fast the bytes can be read, and how fast the operations can be done.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "bench/arms/arms.h"
#include "bench/arms/peak_loops.h"
#include "bench/arms/read_loops.h"
#include "bench/stats.h"

namespace omnibench {
namespace {

/// Limits are what the hardware can do, so OMNI_MAX_ISA and --isa do not lower them.
uint32_t hardware_isa() {
  omni_machine m{};
  m.size = sizeof m;
  check(omni_get_machine(&m), "omni_get_machine");
  return m.isa_hardware;
}

/// Keeps results of pure loops alive; one cache line per task so that tasks do not share one.
struct alignas(64) Sink {
  volatile uint64_t value = 0;
};

class ReadArm final : public LoopArm {
 public:
  ReadArm(std::string name, Workload& workload) : workload_(workload) {
    info_.name = std::move(name);
    info_.role = ArmRole::kRead;
    info_.bytes = moved_bytes(workload.the_case());
    for (size_t part = 0; part < workload.parts().size(); ++part) {
      const auto bytes = static_cast<size_t>(workload.parts()[part].moved_bytes());
      if (bytes > 0) spans_.push_back({part, bytes});
    }
  }

  /// Times every way of reading on the operands themselves and keeps the fastest: the rounds go through all ways in turn.
  void prepare() override {
    std::vector<Way> ways = all_ways();
    std::vector<std::vector<double>> times(ways.size());
    SteadyClock clock;
    constexpr int kRounds = 9;
    const auto calls =
        static_cast<int64_t>(std::clamp(1e6 / std::max(info_.bytes / 20, 20.0), 1.0, 2000.0));  // about 1 ms at 20 GB/s
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < ways.size(); ++i) {
        way_ = ways[round % 2 == 0 ? i : ways.size() - 1 - i];
        times[round % 2 == 0 ? i : ways.size() - 1 - i].push_back(sample(clock, calls));
      }
    }
    size_t best = 0;
    for (size_t i = 1; i < ways.size(); ++i) {
      if (median(times[i]) < median(times[best])) best = i;
    }
    way_ = ways[best];
    info_.detail =
        fmt::format("{}: {} stream{} a block, {} block{} a thread, {}; fastest of {} loops", way_.isa, way_.streams,
                    way_.streams == 1 ? "" : "s", way_.blocks, way_.blocks == 1 ? "" : "s",
                    way_.prefetch > 0 ? fmt::format("prefetch {} bytes ahead", way_.prefetch) : "no prefetch", ways.size());
  }

 protected:
  void call() override {
    const Pool& pool = workload_.pool();
    struct Context {
      const ReadArm* arm;
      const uint8_t* copy;
      int64_t count;
    } context{this, workload_.next(), static_cast<int64_t>(pool.threads()) * way_.blocks};
    const omni_task task = [](void* opaque, int64_t index) {
      const auto& c = *static_cast<const Context*>(opaque);
      c.arm->read_block(c.copy, static_cast<size_t>(index), static_cast<size_t>(c.count));
    };
    pool.parallel()->parallel_for(pool.parallel()->context, context.count, task, &context);
  }

 private:
  struct Way {
    const char* isa;
    ReadLoop loop;
    int streams, prefetch, blocks;
  };
  struct Span {
    size_t part, bytes;
  };

  /// Block `index` of `count`: its share of the lines of every operand.
  void read_block(const uint8_t* copy, size_t index, size_t count) const {
    uint64_t sum = 0;
    for (const Span& span : spans_) {
      const uint8_t* data = workload_.data(copy, span.part);
      const size_t lines = (span.bytes + 63) / 64;
      const size_t from = lines * index / count * 64;
      const size_t to = std::min(lines * (index + 1) / count * 64, span.bytes);
      if (to > from) sum |= way_.loop(data + from, to - from, way_.streams, way_.prefetch);
    }
    sinks_[index].value = sum;
  }

  std::vector<Way> all_ways() {
    std::vector<Way> ways = {{"64-bit loads", read_portable, 1, 0, 1}};
    const auto add = [&](const char* isa, ReadLoop loop) {
      for (const int blocks : {1, 4, 16}) {
        for (const int streams : {1, 2, 4}) ways.push_back({isa, loop, streams, 0, blocks});
        ways.push_back({isa, loop, 1, 1024, blocks});
        ways.push_back({isa, loop, 1, 4096, blocks});
      }
    };
#if defined(__x86_64__)
    const uint32_t isa = hardware_isa();
    if ((isa & OMNI_ISA_AVX512F) != 0) {
      add("64-byte loads", read_avx512);
    }
    if ((isa & OMNI_ISA_AVX2) != 0) {
      add("32-byte loads", read_avx2);
    }
#endif
    sinks_ = std::vector<Sink>(static_cast<size_t>(workload_.pool().threads()) * 16);
    return ways;
  }

  Workload& workload_;
  std::vector<Span> spans_;
  Way way_{"64-bit loads", read_portable, 1, 0, 1};
  mutable std::vector<Sink> sinks_;  ///< a line for each block
};

class PeakArm final : public LoopArm {
 public:
  PeakArm(std::string name, const Workload& workload, std::string which) : workload_(workload), which_(std::move(which)) {
    info_.name = std::move(name);
    info_.role = ArmRole::kPeak;
  }

  void prepare() override {
    choose();
    if (loop_ == nullptr) throw Refused("this machine has no instruction that this program has such a loop for");
    // As many operations as the case, up to some 10 ms, and enough that handing work to the threads does not count.
    const auto threads = static_cast<int64_t>(workload_.pool().threads());
    const double wanted = std::max(2e7 * static_cast<double>(threads), std::min(operations_of(workload_.the_case()), 4e9));
    rounds_ = std::max<int64_t>(1, static_cast<int64_t>(wanted) / threads / per_round_);
    info_.flops = static_cast<double>(rounds_ * per_round_ * threads);
    sinks_ = std::vector<Sink>(static_cast<size_t>(threads));
  }

 protected:
  void call() override {
    const Pool& pool = workload_.pool();
    const omni_task task = [](void* opaque, int64_t index) {
      auto& self = *static_cast<PeakArm*>(opaque);
      self.sinks_[index].value = static_cast<uint64_t>(self.loop_(self.rounds_) != 0);
    };
    pool.parallel()->parallel_for(pool.parallel()->context, static_cast<int64_t>(pool.threads()), task, this);
  }

 private:
  void use(PeakLoop loop, int64_t per_round, const char* detail) {
    loop_ = loop;
    per_round_ = per_round;
    info_.detail = detail;
  }

  void choose() {
#if defined(__x86_64__)
    const auto has = [isa = hardware_isa()](uint32_t bits) { return (isa & bits) == bits; };
    if (which_ == "peak-bf16") {
      if (has(OMNI_ISA_AVX512BF16)) use(peak_bf16_avx512, kPeakBf16Flops, "VDPBF16PS zmm, 24 independent accumulators");
    } else if (which_ == "peak-vnni") {
      if (has(OMNI_ISA_AVX512F | OMNI_ISA_AVX512VNNI)) {
        use(peak_vnni_avx512, kPeakVnniAvx512Ops, "VPDPBUSD zmm, 24 independent accumulators");
      } else if (has(OMNI_ISA_AVX2 | OMNI_ISA_AVX_VNNI)) {
        use(peak_vnni_avx2, kPeakVnniAvx2Ops, "VPDPBUSD ymm (VEX), 12 independent accumulators");
      }
    } else if (has(OMNI_ISA_AVX512F)) {
      use(peak_fma_avx512, kPeakAvx512Flops, "fp32 FMA zmm, 24 independent accumulators");
    } else if (has(OMNI_ISA_FMA | OMNI_ISA_AVX2)) {
      use(peak_fma_avx2, kPeakAvx2Flops, "fp32 FMA ymm, 10 independent accumulators");
    }
#endif
  }

  const Workload& workload_;
  std::string which_;
  PeakLoop loop_ = nullptr;
  int64_t per_round_ = 0, rounds_ = 0;
  std::vector<Sink> sinks_;
};

}  // namespace

std::unique_ptr<Arm> make_read_arm(std::string name, Workload& workload) {
  return std::make_unique<ReadArm>(std::move(name), workload);
}

std::unique_ptr<Arm> make_peak_arm(std::string name, const Workload& workload, const std::string& which) {
  return std::make_unique<PeakArm>(std::move(name), workload, which);
}

}  // namespace omnibench
