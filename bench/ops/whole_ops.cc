// SPDX-License-Identifier: Apache-2.0
// Whole matrices, and whole models in workers.
#include "bench/ops/linear.h"
#include "bench/ops/model.h"
#include "bench/ops/move.h"
#include "bench/ops/tables.h"

namespace omnibench {
namespace {

const std::vector<std::string> kMatrix = {"n", "k"};

}  // namespace

std::vector<Op> whole_ops() {
  std::vector<Op> ops;
  ops.push_back({.name = "pack",
                 .what = "codes (a byte each) -> tg4",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {},
                 .most_rows = 0,
                 .group = "128",
                 .cold = true,
                 .registry = {"pack"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch-int4", "torch-int4"}},
                 .bytes_model = "source codes (one byte each) + packed codes, each once",
                 .parts = pack_parts,
                 .operations = nullptr,
                 .make = make_pack});
  ops.push_back({.name = "dequant",
                 .what = "tg4 -> bf16 rows",
                 .sizes = kMatrix,
                 .shapes = projections(),
                 .variants = {},
                 .most_rows = 0,
                 .group = "128",
                 .cold = true,
                 .registry = {"dequant"},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"torch-int4", "torch-int4"}},
                 .bytes_model = "codes + scales (and zeros) + output (bf16), each once",
                 .parts = dequant_parts,
                 .operations = nullptr,
                 .make = make_dequant});
  ops.push_back(
      {.name = "model",
       .what = "a whole model in a worker: M tokens after `depth` others (M = 1: a step of decoding)",
       .sizes = {"depth", "megabytes"},
       .shapes = {{"start", {16, 512}}, {"deep", {4096, 512}}},
       .variants = {},
       .most_rows = 8192,
       .group = "",
       .cold = true,
       .registry = {},
       .weights = {},
       .peers = {},
       .limits = {"read"},
       .workers = {{"llama-q4_0", "llama-q4_0"}, {"llama-q4_k_m", "llama-q4_k_m"}, {"llama-q4_k_m-plain", "llama-q4_k_m-plain"}},
       .only_workers = true,
       .bytes_model = "workers: weights and cache, as each says; the read arm: `megabytes`",
       .parts = model_parts,
       .operations = nullptr,
       .make = make_model});
  // M: frames of 80 ms. The parts differ in what a worker does, so the name of the shape says it.
  ops.push_back({.name = "speech",
                 .what = "Qwen3-TTS in a worker: M frames after a prompt of `depth` rows, by part (the name of the shape)",
                 .sizes = {"depth", "megabytes"},
                 .shapes = {{"talker", {23, 512}, 1},
                            {"predictor", {23, 512}, 1},
                            {"codec-1", {23, 512}, 1},
                            {"codec-4", {23, 512}, 4},
                            {"codec-50", {23, 512}, 50},
                            {"whole", {23, 512}, 24},
                            {"first", {23, 512}, 2}},
                 .variants = {},
                 .most_rows = 8192,
                 .group = "",
                 .cold = true,
                 .registry = {},
                 .weights = {},
                 .peers = {},
                 .limits = {"read"},
                 .workers = {{"qwen-tts-bf16", "qwen-tts-bf16"},
                             {"qwen-tts-fp32", "qwen-tts-fp32"},
                             {"llama-speech-q4_0", "llama-speech-q4_0"},
                             {"llama-speech-q8_0", "llama-speech-q8_0"}},
                 .only_workers = true,
                 .bytes_model = "workers: weights, as each says; the read arm: `megabytes`",
                 .parts = model_parts,
                 .operations = nullptr,
                 .make = make_model});
  return ops;
}

}  // namespace omnibench
