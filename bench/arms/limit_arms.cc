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
  ReadArm(std::string name, Operands& operands) : operands_(operands) {
    info_.name = std::move(name);
    info_.role = ArmRole::kRead;
    info_.bytes = bytes_model(operands.the_case()).total();
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
    const std::vector<Span>& spans = operands_.next().spans;
    const Pool& pool = operands_.pool();
    struct Context {
      const std::vector<Span>* spans;
      const Way* way;
      Sink* sinks;
      int64_t count;
    } context{&spans, &way_, sinks_.data(), static_cast<int64_t>(pool.threads()) * way_.blocks};
    const omni_task task = [](void* opaque, int64_t index) {
      const auto& c = *static_cast<const Context*>(opaque);
      uint64_t sum = 0;
      for (const Span& span : *c.spans) {
        const size_t lines = (span.bytes + 63) / 64;
        const size_t from = lines * static_cast<size_t>(index) / static_cast<size_t>(c.count) * 64;
        const size_t to = std::min(lines * static_cast<size_t>(index + 1) / static_cast<size_t>(c.count) * 64, span.bytes);
        if (to > from) sum |= c.way->loop(span.data + from, to - from, c.way->streams, c.way->prefetch);
      }
      c.sinks[index].value = sum;
    };
    pool.parallel()->parallel_for(pool.parallel()->context, context.count, task, &context);
  }

 private:
  struct Way {
    const char* isa;
    ReadLoop loop;
    int streams, prefetch, blocks;
  };

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
    sinks_ = std::vector<Sink>(static_cast<size_t>(operands_.pool().threads()) * 16);
    return ways;
  }

  Operands& operands_;
  Way way_{"64-bit loads", read_portable, 1, 0, 1};
  std::vector<Sink> sinks_;
};

class PeakArm final : public LoopArm {
 public:
  PeakArm(std::string name, const Operands& operands, bool bf16) : operands_(operands), bf16_(bf16) {
    info_.name = std::move(name);
    info_.role = ArmRole::kPeak;
  }

  void prepare() override {
    int64_t per_round = 0;
#if defined(__x86_64__)
    const uint32_t isa = hardware_isa();
    if (bf16_) {
      if ((isa & OMNI_ISA_AVX512BF16) == 0) throw Refused("this machine has no VDPBF16PS");
      loop_ = peak_bf16_avx512;
      per_round = kPeakBf16Flops;
      info_.detail = "VDPBF16PS zmm, 24 independent accumulators";
    } else if ((isa & OMNI_ISA_AVX512F) != 0) {
      loop_ = peak_fma_avx512;
      per_round = kPeakAvx512Flops;
      info_.detail = "fp32 FMA zmm, 24 independent accumulators";
    } else if ((isa & OMNI_ISA_FMA) != 0 && (isa & OMNI_ISA_AVX2) != 0) {
      loop_ = peak_fma_avx2;
      per_round = kPeakAvx2Flops;
      info_.detail = "fp32 FMA ymm, 10 independent accumulators";
    }
#endif
    if (loop_ == nullptr) throw Refused("no vector multiply-add that this program has a loop for");
    // As many operations as the case, and enough that handing work to the threads does not count.
    const auto threads = static_cast<int64_t>(operands_.pool().threads());
    const double wanted = std::max(flops(operands_.the_case()), 2e7 * static_cast<double>(threads));
    rounds_ = std::max<int64_t>(1, static_cast<int64_t>(wanted) / threads / per_round);
    info_.flops = static_cast<double>(rounds_ * per_round * threads);
    sinks_ = std::vector<Sink>(static_cast<size_t>(threads));
  }

 protected:
  void call() override {
    const Pool& pool = operands_.pool();
    const omni_task task = [](void* opaque, int64_t index) {
      auto& self = *static_cast<PeakArm*>(opaque);
      self.sinks_[index].value = static_cast<uint64_t>(self.loop_(self.rounds_) != 0);
    };
    pool.parallel()->parallel_for(pool.parallel()->context, static_cast<int64_t>(pool.threads()), task, this);
  }

 private:
  const Operands& operands_;
  bool bf16_;
  PeakLoop loop_ = nullptr;
  int64_t rounds_ = 0;
  std::vector<Sink> sinks_;
};

}  // namespace

std::unique_ptr<Arm> make_read_arm(std::string name, Operands& operands) {
  return std::make_unique<ReadArm>(std::move(name), operands);
}

std::unique_ptr<Arm> make_peak_arm(std::string name, const Operands& operands, bool bf16) {
  return std::make_unique<PeakArm>(std::move(name), operands, bf16);
}

}  // namespace omnibench
