# SPDX-License-Identifier: Apache-2.0
"""What the ready workers share: the protocol of docs/workers.md, the operands, and the rotation of cold cases."""
import json
import os
import sys
import time


def with_huge_pages():
    """Restarts the interpreter so that glibc and PyTorch ask for 2 MiB pages, as every arm of omni-bench has them."""
    wanted = {"THP_MEM_ALLOC_ENABLE": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    if any(os.environ.get(key) != value for key, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable] + sys.argv)


class Refused(Exception):
    """The peer has no operator for the case: reported, no failure."""


def tensor(case, name, kind, *shape):
    """An operand that the harness wrote: kind is "bf16", "f32", "u8", "s8" or "i32"."""
    import numpy
    import torch

    stored = {"bf16": numpy.int16, "f32": numpy.float32, "u8": numpy.uint8, "s8": numpy.int8, "i32": numpy.int32}[kind]
    values = torch.from_numpy(numpy.fromfile(case[name], dtype=stored).reshape(shape))
    return values.view(torch.bfloat16) if kind == "bf16" else values


class Operands:
    """Of w4a16, pack and dequant: codes uint8 [N][K], scales and zeros fp32 [K/g][N][2] (bf16-exact), x bf16 [M][K], all as the harness wrote them."""

    def __init__(self, case):
        import numpy
        import torch

        n, k, m, group = case["n"], case["k"], case["m"], case["group"]
        groups = (k + group - 1) // group
        self.codes = torch.from_numpy(numpy.fromfile(case["codes"], dtype=numpy.uint8).reshape(n, k))
        scales = numpy.fromfile(case["scales"], dtype=numpy.int16).reshape(groups, n, 2)
        self.scales_zeros = torch.from_numpy(scales).view(torch.bfloat16)
        self.x = None
        if m > 0:
            self.x = torch.from_numpy(numpy.fromfile(case["x"], dtype=numpy.int16).reshape(m, k)).view(torch.bfloat16)


def copies_for(case, tensors):
    """The tensors, and as many copies of them as a cold case must rotate through."""
    import torch

    own = sum(t.numel() * t.element_size() for t in tensors)
    count = 1
    if case["cache"] == "cold":
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        count = int(max(2, min(-(-case["rotation_bytes"] // own), available // 2 // own)))
    return [tensors] + [[torch.clone(t) for t in tensors] for _ in range(count - 1)]


class Served:
    """One case: subclasses fill `sets` (the rotation), `detail`, `compare`, `bytes`, and define call(tensors)."""

    compare = "none"
    output_type = "bf16"
    bytes = 0

    def __init__(self):
        self.sets, self.at, self.detail = [], 0, ""

    def next(self):
        self.at = (self.at + 1) % len(self.sets)
        return self.sets[self.at]

    def call(self, tensors):
        raise NotImplementedError

    def output(self):
        return self.call(self.sets[0])

    def run(self, calls):
        self.call(self.next())  # untimed: wakes the threads
        begin = time.perf_counter_ns()
        for _ in range(calls):
            self.call(self.next())
        return time.perf_counter_ns() - begin


def fastest(forms, *arguments):
    """The name and the function of the form that is the fastest here: 2 untimed calls, then the least of 5 times 5."""
    best = None
    for name, form in forms.items():
        form(*arguments)
        form(*arguments)
        least = None
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(5):
                form(*arguments)
            spent = time.perf_counter_ns() - begin
            least = spent if least is None else min(least, spent)
        if best is None or least < best[0]:
            best = (least, name, form)
    return best[1], best[2]


def write_raw(result, path):
    """The elements of a tensor, as they lie in memory."""
    import torch

    whole = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
    result = result.contiguous()
    (result.view(whole[result.dtype]) if result.dtype in whole else result).numpy().tofile(path)


def answer_all(make, begin_case=lambda case: None):
    """Answers the harness until it hangs up. `make(case)` returns a Served."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    served = None
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "case":
                served = None
                case = json.loads(rest)
                begin_case(case)
                served = make(case)
                answer = {"ok": True, "detail": served.detail, "compare": served.compare, "bytes": served.bytes}
            elif word == "output":
                write_raw(served.output(), rest)
                answer = {"ok": True, "type": served.output_type}
            elif word == "run":
                answer = {"ns": served.run(int(rest))}
            else:
                answer = {"error": f"unknown request: {word}"}
        except Refused as refusal:
            answer = {"refused": str(refusal)}
        except Exception as error:  # the harness records it and goes on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def serve(make):
    """The same for a peer that runs on PyTorch."""
    import torch

    with torch.inference_mode():
        answer_all(make, lambda case: torch.set_num_threads(case["threads"]))
