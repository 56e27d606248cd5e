#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Any peer by its name, as `--peers "python bench/peers/peer.py"` asks for it: torch-int4, torch-bf16, torch, vllm, vllm-w4a16,
llama-q4_0, llama-q4_k_m, llama-q4_k_m-plain, llama-speech-q4_0, llama-speech-q8_0,
qwen-tts-bf16, qwen-tts-fp32.

A package that is not installed is a refusal, so that a run without it goes on."""
import importlib
import json
import sys

PEERS = {
    "torch-int4": ("torch_int4", []),
    "torch-bf16": ("torch_int4", ["--bf16"]),
    "torch": ("torch_rows", []),
    "vllm": ("vllm_cpu", ["--w4a8"]),
    "vllm-w4a16": ("vllm_cpu", ["--w4a16"]),
    "llama-q4_0": ("llama_cpp_model", ["--q4_0"]),
    "llama-q4_k_m": ("llama_cpp_model", ["--q4_k_m"]),
    "llama-q4_k_m-plain": ("llama_cpp_model", ["--q4_k_m-plain"]),
    "llama-speech-q4_0": ("llama_cpp_speech", ["--q4_0"]),
    "llama-speech-q8_0": ("llama_cpp_speech", ["--q8_0"]),
    "qwen-tts-bf16": ("qwen_tts_model", ["--bf16"]),
    "qwen-tts-fp32": ("qwen_tts_model", ["--fp32"]),
}


def refuse(why):
    for _ in sys.stdin:
        print(json.dumps({"refused": why}), flush=True)


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in PEERS:
        return refuse(f"no peer {name}: {', '.join(PEERS)}")
    module, flags = PEERS[name]
    sys.argv = [sys.argv[0], name] + flags
    try:
        served = importlib.import_module(module)
    except ImportError as error:
        return refuse(f"not installed here: {error}")
    return served.serve()


if __name__ == "__main__":
    main()
