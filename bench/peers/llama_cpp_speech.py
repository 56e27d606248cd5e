#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's kernels on the two language models of Qwen3-TTS-0.6B with random weights, as arms of `omni-bench --op speech`:
`--arms +llama=cmd:'... llama_cpp_speech.py --q4_0'` (or `--q8_0`).

What its package can be asked for: the part of llama.cpp that makes codes and samples is not in it. So a layer is that of its plain Qwen3,
which is the talker's, and one head and one table stand for the predictor's fifteen of the same size. llama.cpp's own speech program keeps
the predictor in bf16; here it is quantised like the talker, which is faster."""
import time

import llama_cpp_model
import worker

CODEBOOKS = 15


class TalkerStep(llama_cpp_model.Decode):
    op, model_name, vocabulary = "speech", "talker-0.6b", 3072


class PredictorFrame(llama_cpp_model.Decode):
    """Two rows, then one at a time until there are 15 codes, which nobody samples here."""

    op, model_name, vocabulary = "speech", "predictor-0.6b", 2048

    def __init__(self, case):
        super().__init__(dict(case, depth=1))
        self.bytes = 0

    def frame(self):
        llama_cpp_model.llama_cpp.llama_memory_clear(self.memory, False)
        self.position = 0
        self.forward(2)
        for _ in range(CODEBOOKS - 1):
            self.forward(1)

    def run(self, calls):
        self.frame()
        begin = time.perf_counter_ns()
        for _ in range(calls):
            self.frame()
        return time.perf_counter_ns() - begin


def make(case):
    part = {"talker": TalkerStep, "predictor": PredictorFrame}.get(case.get("shape"))
    if part is None:
        raise worker.Refused("serves the shapes talker and predictor")
    return part(case)


def serve():
    llama_cpp_model.serve(make)


if __name__ == "__main__":
    serve()
