#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch as an arm of omni-bench: `--arms +torch=cmd:'python bench/peers/torch_int4.py'`.

w4a16: _weight_int4pack_mm_for_cpu, or F.linear on dequantised bf16 weights with --bf16; pack: _convert_weight_to_int4pack_for_cpu
from int32 codes; dequant: the same weights by tensor expressions, since PyTorch has no operator for it."""
import sys

import worker

worker.with_huge_pages()

import torch  # noqa: E402


def capability():
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def need_avx512_packing(case):
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        raise worker.Refused("this build of PyTorch packs for another capability than AVX-512: other bytes, other kernels")
    if case["n"] % 16 != 0 or case["k"] % case["group"] != 0 or case["group"] not in (32, 64, 128, 256):
        raise worker.Refused("PyTorch takes N in multiples of 16, K in multiples of the group, groups of 32, 64, 128 or 256")


def packed_weights(operands):
    return torch.ops.aten._convert_weight_to_int4pack_for_cpu(operands.codes.to(torch.int32), 1)


def dequantised(operands, group):
    """bf16((q - 8) * s + z) in fp32, [N][K]; blocks of channels bound the transient."""
    n, k = operands.codes.shape
    result = torch.empty(n, k, dtype=torch.bfloat16)
    for n0 in range(0, n, 1024):
        n1 = min(n, n0 + 1024)
        expand = [operands.scales_zeros[:, n0:n1, i].float().t().repeat_interleave(group, 1)[:, :k] for i in (0, 1)]
        result[n0:n1] = (operands.codes[n0:n1].float() - 8) * expand[0] + expand[1]
    return result


class Int4(worker.Served):
    compare = "torch"

    def __init__(self, case, operands):
        super().__init__()
        need_avx512_packing(case)
        self.group, self.x = case["group"], operands.x
        self.sets = worker.copies_for(case, [packed_weights(operands), operands.scales_zeros])
        self.detail = f"_weight_int4pack_mm_for_cpu, {capability()}"
        self.bytes = sum(t.numel() * t.element_size() for t in self.sets[0]) + 2 * case["m"] * (case["k"] + case["n"])

    def call(self, tensors):
        return torch.ops.aten._weight_int4pack_mm_for_cpu(self.x, tensors[0], self.group, tensors[1])


class Bf16(worker.Served):
    compare = "bf16-weights"

    def __init__(self, case, operands):
        super().__init__()
        self.x = operands.x
        self.sets = worker.copies_for(case, [dequantised(operands, case["group"])])
        self.detail = f"F.linear on bf16 weights, {capability()}"
        self.bytes = 2 * case["n"] * case["k"] + 2 * case["m"] * (case["k"] + case["n"])

    def call(self, tensors):
        return torch.nn.functional.linear(self.x, tensors[0])


class Pack(worker.Served):
    compare = "bytes"

    def __init__(self, case, operands):
        super().__init__()
        need_avx512_packing(case)
        self.sets = worker.copies_for(case, [operands.codes.to(torch.int32)])
        self.detail = f"_convert_weight_to_int4pack_for_cpu (int32 codes), {capability()}"
        self.bytes = case["n"] * case["k"] * 4.5

    def call(self, tensors):
        return torch.ops.aten._convert_weight_to_int4pack_for_cpu(tensors[0], 1)


class Dequant(worker.Served):
    """Unpacks the AVX-512 packing and scales it, all by tensor expressions with fp32 arithmetic."""

    compare = "bf16"

    def __init__(self, case, operands):
        super().__init__()
        need_avx512_packing(case)
        if case["n"] % 64 != 0:
            raise worker.Refused("the expressions are written for whole blocks of 64 channels")
        self.n, self.k, self.group = case["n"], case["k"], case["group"]
        self.sets = worker.copies_for(case, [packed_weights(operands), operands.scales_zeros])
        self.detail = f"tensor expressions, {capability()}"
        self.bytes = sum(t.numel() * t.element_size() for t in self.sets[0]) + 2 * case["n"] * case["k"]

    def call(self, tensors):
        blocks = tensors[0].view(self.n // 64, self.k, 32)
        codes = torch.cat((blocks & 15, blocks >> 4), dim=2).permute(0, 2, 1).reshape(self.n, self.k // self.group, self.group)
        scale, zero = (tensors[1][:, :, i].t().unsqueeze(2).float() for i in (0, 1))
        return ((codes.float() - 8) * scale + zero).to(torch.bfloat16).view(self.n, self.k)


def make(case):
    if case["op"] not in ("w4a16", "pack", "dequant"):
        raise worker.Refused("serves w4a16, pack and dequant")
    operands = worker.Operands(case)
    if case["op"] == "pack":
        return Pack(case, operands)
    if case["op"] == "dequant":
        return Dequant(case, operands)
    return Bf16(case, operands) if "--bf16" in sys.argv else Int4(case, operands)


def serve():
    worker.serve(make)


if __name__ == "__main__":
    serve()
