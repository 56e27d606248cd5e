#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp on Spark-X2.5-1.7B with random weights, as arms of `omni-bench --op model`: `--arms +llama=cmd:'... llama_cpp_model.py --q4_0'`.

--q4_0, --q4_k_m: the file types of that name, with llama.cpp's repacking at load. --q4_k_m-plain: without it (`--repack 0` of its
programs), which makes its prefill the fastest and its decode slower."""
import ctypes
import os
import sys
import time

import worker

import llama_cpp  # noqa: E402
import gguf_models  # noqa: E402

FORMS = {"--q4_0": ("q4_0", 2, True), "--q4_k_m": ("q4_k_m", 15, True), "--q4_k_m-plain": ("q4_k_m", 15, False), "--q8_0": ("q8_0", 7, True)}
CHUNK = 512


def quiet(level, message, data):
    if level == 4:  # an error
        sys.stderr.buffer.write(message)


callback = llama_cpp.llama_log_callback(quiet)


class Decode(worker.Served):
    """`m` tokens after `depth` others: one is a step of decoding, more are a prefill."""

    op, model_name, vocabulary = "model", "spark-1.7b", 131072

    def __init__(self, case):
        super().__init__()
        if case["op"] != self.op:
            raise worker.Refused(f"serves {self.op}")
        self.m, self.depth = case["m"], case["depth"]
        name, number, repack = FORMS[sys.argv[-1]]
        path = gguf_models.quantised(self.model_name, name, number)
        model = llama_cpp.llama_model_default_params()
        model.use_extra_bufts = repack
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = -(-(self.depth + max(self.m, 512)) // 256) * 256
        context.n_batch = context.n_ubatch = CHUNK
        context.n_threads = context.n_threads_batch = case["threads"]
        self.context = llama_cpp.llama_init_from_model(self.model, context)
        if not self.context:
            raise RuntimeError(f"{path}: llama.cpp cannot make a context")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.position = 0
        self.saved = None
        self.rewind()
        self.sets = [[]]
        self.bytes = os.path.getsize(path) if self.m == 1 else 0
        self.detail = f"{name}{'' if repack else ', not repacked'}, llama-cpp-python {llama_cpp.__version__}"

    def forward(self, count):
        for start in range(0, count, CHUNK):
            part = min(CHUNK, count - start)
            ids = (llama_cpp.llama_token * part)(*[(7919 * (self.position + i) + 13) % self.vocabulary for i in range(part)])
            if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(ids, part)) != 0:
                raise RuntimeError("llama_decode failed")
            self.position += part
        llama_cpp.llama_synchronize(self.context)

    def rewind(self):
        """To `depth` tokens. A window drops what it has passed, so the cache is put back as it was."""
        llama_cpp.llama_memory_clear(self.memory, True)
        self.position = 0
        if self.saved is None:
            self.forward(self.depth)
            size = llama_cpp.llama_state_seq_get_size(self.context, 0)
            self.saved = (ctypes.c_uint8 * size)()
            if llama_cpp.llama_state_seq_get_data(self.context, self.saved, size, 0) != size:
                raise RuntimeError("llama_state_seq_get_data failed")
        elif llama_cpp.llama_state_seq_set_data(self.context, self.saved, len(self.saved), 0) == 0:
            raise RuntimeError("llama_state_seq_set_data failed")
        self.position = self.depth

    def make_room(self, count):
        """Decoding goes on for some hundred tokens before it begins again; a prefill begins at `depth` each time."""
        if self.m > 1 or self.position + count > self.depth + 512:
            self.rewind()

    def run(self, calls):
        self.make_room(1)
        self.forward(1)  # untimed: wakes the threads
        spent = 0
        for _ in range(calls):
            self.make_room(self.m)
            begin = time.perf_counter_ns()
            self.forward(self.m)
            spent += time.perf_counter_ns() - begin
        return spent


def make(case):
    return Decode(case)


def serve(make=make):
    llama_cpp.llama_log_set(callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    worker.answer_all(make)


if __name__ == "__main__":
    serve()
