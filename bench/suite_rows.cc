// SPDX-License-Identifier: Apache-2.0
// THE table of the suite. The targets are what the library is held to on a machine with AVX-512 VNNI and BF16 and two threads.
#include "bench/suite.h"

namespace omnibench {
namespace {

Figure read_share(double target = 0) { return {Measure::kShareOfRead, "read", target}; }
Figure peak_share(const char* peak, double target = 0) { return {Measure::kShareOfPeak, peak, target}; }
Figure time(double at_most_ns = 0) { return {Measure::kTime, "", at_most_ns}; }
Figure faster_than(const char* arm, double target = 0) { return {Measure::kTimesFaster, arm, target}; }

std::vector<SuiteRow> make_rows() {
  const auto linear = [](const char* name, const char* op, const char* shape, int64_t m, std::vector<Figure> figures) {
    return SuiteRow{name, op, shape, m, "", "", 0, std::move(figures)};
  };
  // Hot, on one thread unless said otherwise.
  const auto rows = [](const char* name, const char* op, const char* shape, int64_t m, const char* variant, uint32_t threads,
                       std::vector<Figure> figures) {
    return SuiteRow{name, op, shape, m, "", variant, threads, std::move(figures)};
  };
  std::vector<SuiteRow> out = {
      linear("w4a8-m1-gate_up", "w4a8", "gate_up", 1, {read_share(0.90), faster_than("vllm")}),
      linear("w4a8-m1-down", "w4a8", "down", 1, {read_share(0.90)}),
      linear("w4a8-m1-head", "w4a8", "head", 1, {read_share(0.90)}),
      linear("w4a8-m4-gate_up", "w4a8", "gate_up", 4, {peak_share("peak-vnni", 0.75), faster_than("vllm")}),
      linear("w4a8-m8-gate_up", "w4a8", "gate_up", 8, {peak_share("peak-vnni", 0.78), faster_than("vllm", 2.3)}),
      linear("w4a8-m16-gate_up", "w4a8", "gate_up", 16, {peak_share("peak-vnni", 0.80), faster_than("vllm", 1.8)}),
      linear("w4a8-m32-gate_up", "w4a8", "gate_up", 32, {peak_share("peak-vnni", 0.80), faster_than("vllm", 1.5)}),
      linear("w4a8-m512-gate_up", "w4a8", "gate_up", 512, {peak_share("peak-vnni", 0.85), faster_than("vllm", 1.3)}),
      linear("w8a8-m1-gate_up", "w8a8", "gate_up", 1, {read_share(0.90)}),
      linear("w8a8-m512-gate_up", "w8a8", "gate_up", 512, {peak_share("peak-vnni", 0.85), faster_than("onednn")}),
      linear("w8a16-m1-gate_up", "w8a16", "gate_up", 1, {read_share()}),
      linear("w4a16-m1-gate_up", "w4a16", "gate_up", 1, {read_share(), faster_than("torch-int4")}),
      linear("w4a16-m1-o", "w4a16", "o", 1, {read_share(), faster_than("torch-int4")}),
      linear("w4a16-m32-gate_up", "w4a16", "gate_up", 32, {faster_than("onednn"), faster_than("torch-int4")}),
      linear("w4a16-m128-gate_up", "w4a16", "gate_up", 128, {faster_than("onednn"), faster_than("torch-int4")}),
      linear("w4a16-m512-gate_up", "w4a16", "gate_up", 512,
             {faster_than("onednn", 0.95), faster_than("torch-int4", 2.4), peak_share("peak-fma")}),
      {"w4a16-m512-gate_up-g64", "w4a16", "gate_up", 512, "64", "", 0, {faster_than("onednn", 0.92), peak_share("peak-fma")}},
      linear("dense-m1-gate_up", "dense", "gate_up", 1, {read_share(), faster_than("onednn")}),
      linear("dense-m512-gate_up", "dense", "gate_up", 512, {faster_than("onednn", 0.95), peak_share("peak-fma")}),
      rows("attention-decode", "attention", "decode", 1, "", 0, {read_share(0.70), faster_than("torch")}),
      rows("attention-prefill", "attention", "prefill", 512, "", 0, {peak_share("peak-fma"), faster_than("torch")}),
      rows("rmsnorm-m1", "rmsnorm", "hidden", 1, "", 1, {time(300), faster_than("vllm")}),
      rows("rmsnorm-m512", "rmsnorm", "hidden", 512, "", 0, {faster_than("vllm", 1.3), faster_than("torch")}),
      rows("geglu-m1", "geglu", "mlp", 1, "", 1, {faster_than("torch", 1.5)}),
      rows("geglu-m512", "geglu", "mlp", 512, "", 0, {faster_than("torch", 1.0)}),
      rows("swiglu-m1", "swiglu", "mlp", 1, "", 1, {time(), faster_than("torch")}),
      rows("headnorm-m1", "headnorm", "talker", 1, "f32", 1, {time(), faster_than("torch")}),
      rows("layernorm-m100", "layernorm", "encoder", 100, "f32", 1, {time(), faster_than("torch")}),
      // One audio frame of 24 kHz behind the last blocks of the codec decoder, in chunks of four.
      rows("snake-m7680", "activation", "snake-96", 7680, "snake", 0, {time(), faster_than("torch")}),
      rows("snake-m2560", "activation", "snake-192", 2560, "snake", 0, {time(), faster_than("torch")}),
      rows("headgate-m1", "headgate", "gate", 1, "", 1, {time(400), faster_than("torch")}),
      rows("headgate-m512", "headgate", "gate", 512, "values", 0, {faster_than("torch")}),
      rows("rope-m1", "rope", "partial", 1, "", 1, {time(), faster_than("vllm")}),
      rows("rope-m512", "rope", "partial", 512, "", 0, {faster_than("vllm")}),
      rows("quantize-m1", "quantize", "hidden", 1, "", 1, {time(), faster_than("vllm")}),
      rows("gather-m1", "gather", "embedding", 1, "", 1, {time()}),
      rows("gather-m512", "gather", "embedding", 512, "", 0, {time()}),
      rows("quantize-m512", "quantize", "hidden", 512, "", 0, {faster_than("vllm")}),
  };
  return out;
}

}  // namespace

const std::vector<SuiteRow>& suite_rows() {
  static const std::vector<SuiteRow> rows = make_rows();
  return rows;
}

}  // namespace omnibench
