// SPDX-License-Identifier: Apache-2.0
// Milliseconds of a frame by stage, for a codec of random weights in the published shape:
//   tts_codec_profile fp32|bf16|bf16w FRAMES_PER_CALL [CALLS [THREADS [MAX_ISA]]]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "reference/qwen3_tts/codec/codec_for_test.h"

namespace ref::tts {
namespace {

int run(int argc, char** argv) {
  const auto number = [&](int at, long otherwise) { return argc > at ? std::atol(argv[at]) : otherwise; };
  const auto per_call = static_cast<size_t>(number(2, 1)), calls = static_cast<size_t>(number(3, 40));
  const auto threads = static_cast<uint32_t>(number(4, 2));
  const test::Weights weights =
      test::random_codec("qwen3-tts-0.6b", std::string(argv[1]) == "fp32" ? CodecType::kFp32 : CodecType::kBf16);
  if (omni_set_num_threads(threads) != OMNI_OK) return 1;
  CodecDecoder decoder(
      weights,
      {.max_frames = static_cast<int64_t>(per_call), .fp32 = std::string(argv[1]) == "bf16w", .max_isa = argc > 5 ? argv[5] : ""});
  const std::vector<Frame> frames = test::random_frames(per_call * (calls + 3), test::codes_of(weights));
  std::vector<float> samples(per_call * kFrameSamples);
  std::vector<double> times;
  std::clock_t cpu = 0;
  for (size_t call = 0; call < calls + 3; ++call) {
    if (call == 3) {
      decoder.clear_stage_times();
      cpu = std::clock();
    }
    const auto start = std::chrono::steady_clock::now();
    decoder.decode({&frames[call * per_call], per_call}, samples);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (call >= 3) times.push_back(took.count() / static_cast<double>(per_call));
  }
  const double busy = static_cast<double>(std::clock() - cpu) * 1e3 / CLOCKS_PER_SEC / static_cast<double>(calls * per_call);
  std::sort(times.begin(), times.end());
  for (const StageTime& time : decoder.stage_times()) {
    std::printf("%-20s %8.3f ms\n", time.name.c_str(), time.seconds * 1e3 / static_cast<double>(calls * per_call));
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "a frame: median %.2f ms, least %.2f ms, most %.2f ms, of processors %.2f ms; weights %.1f MB, state %.2f MB, working %.2f "
      "MB, peak RSS %.0f MB\n",
      times[times.size() / 2], times.front(), times.back(), busy, static_cast<double>(decoder.weight_bytes()) / 1e6,
      static_cast<double>(decoder.state_bytes()) / 1e6, static_cast<double>(decoder.working_bytes()) / 1e6,
      static_cast<double>(usage.ru_maxrss) / 1e3);
  for (const std::string& line : decoder.describe()) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace
}  // namespace ref::tts

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tts_codec_profile fp32|bf16|bf16w FRAMES_PER_CALL [CALLS [THREADS [MAX_ISA]]]\n");
    return 2;
  }
  try {
    return ref::tts::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tts_codec_profile: %s\n", error.what());
    return 1;
  }
}
