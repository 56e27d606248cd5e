#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on rows of activations, as arms of omni-bench: `--arms +torch=cmd:'python bench/peers/torch_rows.py'`.

rmsnorm: F.rms_norm; geglu, swiglu: the fastest of several forms of F.gelu(gate) * up, F.silu(gate) * up; headnorm: F.rms_norm of the
heads of queries and of keys; layernorm: F.layer_norm; activation: the function, SnakeBeta by the fastest of its forms; headgate: sigmoid
of a matmul; attention: scaled_dot_product_attention with grouped queries on contiguous keys and values; conv1d, depthwise: F.conv1d.
What is written into an output that exists already is, since ours is."""
import math

import worker

worker.with_huge_pages()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


def version():
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


class Rmsnorm(worker.Served):
    compare = "bound"

    def __init__(self, case):
        super().__init__()
        m, n = case["m"], case["n"]
        if case["class"] != "plain":
            raise worker.Refused("PyTorch has no such fused operator")
        self.x, self.weight = worker.tensor(case, "x", "bf16", m, n), worker.tensor(case, "weight", "bf16", n)
        self.sets = [[]]
        self.detail = f"F.rms_norm, {version()}"
        self.bytes = 2 * n + 4 * m * n

    def call(self, tensors):
        return F.rms_norm(self.x, (self.x.shape[1],), self.weight, 1e-6)


class Gated(worker.Served):
    compare = "bound"

    def __init__(self, case):
        name, function, into = {
            "geglu": ("gelu", F.gelu, torch.ops.aten.gelu.out),
            "swiglu": ("silu", F.silu, torch.ops.aten.silu.out),
        }[case["op"]]
        super().__init__()
        m, n = case["m"], case["n"]
        rows = worker.tensor(case, "gate_up", "bf16", m, 2 * n)
        gate, up = rows[:, :n].contiguous(), rows[:, n:].contiguous()
        out, hidden = torch.empty(m, n, dtype=torch.bfloat16), torch.empty(m, n, dtype=torch.bfloat16)

        def chunked():
            return function(rows[:, :n]) * rows[:, n:]

        def chunked_into():
            into(rows[:, :n], out=hidden)
            return torch.mul(hidden, rows[:, n:], out=out)

        def halves():
            return function(gate) * up

        def halves_into():
            into(gate, out=hidden)
            return torch.mul(hidden, up, out=out)

        forms = {
            f"F.{name}(gate) * up on views": chunked,
            "the same into outputs that exist": chunked_into,
            f"F.{name}(gate) * up, gate and up contiguous": halves,
            "the same into outputs that exist, gate and up contiguous": halves_into,
        }
        form, self.form = worker.fastest(forms)
        self.sets = [[]]
        self.detail = f"{form} (the fastest of {len(forms)} forms), {version()}"
        self.bytes = 6 * m * n

    def call(self, tensors):
        return self.form()


class Headnorm(worker.Served):
    compare = "bound"

    def __init__(self, case):
        super().__init__()
        m, q, k, d = case["m"], case["q_heads"], case["k_heads"], case["head_dim"]
        self.output_type = "f32" if case["class"] == "f32" else "bf16"
        x = worker.tensor(case, "x", self.output_type, m, q + k, d)
        self.parts = [(x[:, :q], worker.tensor(case, "q_weight", "f32", d).to(x.dtype)), (x[:, q:], worker.tensor(case, "k_weight", "f32", d).to(x.dtype))]
        self.sets = [[]]
        self.detail = f"F.rms_norm of the heads of queries and of keys, {version()}"
        self.bytes = 2 * x.numel() * x.element_size() + 8 * d

    def call(self, tensors):
        return [F.rms_norm(heads, (heads.shape[2],), weight, 1e-6) for heads, weight in self.parts]

    def output(self):
        return torch.cat(self.call(self.sets[0]), 1)


class Layernorm(worker.Served):
    compare = "bound"

    def __init__(self, case):
        super().__init__()
        m, n = case["m"], case["n"]
        self.output_type = "bf16" if case["class"] == "bf16" else "f32"
        self.x = worker.tensor(case, "x", self.output_type, m, n)
        self.weight, self.bias = (worker.tensor(case, name, "f32", n).to(self.x.dtype) for name in ("weight", "bias"))
        self.sets = [[]]
        self.detail = f"F.layer_norm, {version()}"
        self.bytes = 2 * self.x.numel() * self.x.element_size() + 8 * n

    def call(self, tensors):
        return F.layer_norm(self.x, (self.x.shape[1],), self.weight, self.bias, 1e-5)


class Activation(worker.Served):
    compare = "bound"
    functions = {"relu": F.relu, "elu": F.elu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp}

    def __init__(self, case):
        super().__init__()
        m, n, kind = case["m"], case["n"], case["class"]
        self.output_type = "bf16" if kind == "snake-bf16" else "f32"
        x = worker.tensor(case, "x", self.output_type, m, n)
        self.sets = [[]]
        self.bytes = 2 * x.numel() * x.element_size()
        if kind in self.functions:
            function = self.functions[kind]
            self.form = lambda: function(x)
            self.detail = f"{kind}, {version()}"
            return
        a, b = (worker.tensor(case, name, "f32", n).to(x.dtype) for name in ("a", "b"))

        def plain():
            return x + b * torch.pow(torch.sin(x * a), 2)

        def fused():
            sine = torch.mul(x, a).sin_()
            return torch.addcmul(x, sine.mul_(sine), b)

        name, self.form = worker.fastest({"x + b * sin(x * a) ** 2": plain, "addcmul of a sine in place": fused})
        self.detail = f"{name} (the fastest of 2 forms), {version()}"
        self.bytes += 8 * n

    def call(self, tensors):
        return self.form()


class Headgate(worker.Served):
    compare = "bound"
    head_dim = 256

    def __init__(self, case):
        super().__init__()
        m, h, k = case["m"], case["h"], case["k"]
        self.x = worker.tensor(case, "x", "bf16", m, k)
        self.weights = worker.tensor(case, "weights", "bf16", h, k)
        self.values = worker.tensor(case, "values", "bf16", m, h, self.head_dim) if case["class"] == "values" else None
        self.output_type = "bf16"
        self.sets = [[]]
        self.detail = f"sigmoid(F.linear(x, w)){' * values' if self.values is not None else ''}, {version()}"
        self.bytes = 2 * k * (m + h) + 2 * m * h * (1 if self.values is None else 2 * self.head_dim)

    def call(self, tensors):
        gates = torch.sigmoid_(F.linear(self.x, self.weights))
        return gates if self.values is None else self.values * gates.unsqueeze(2)


class Attention(worker.Served):
    compare = "bound"

    def __init__(self, case):
        super().__init__()
        if case["class"] == "s8":
            raise worker.Refused("PyTorch has no attention over an int8 cache")
        kind = "f32" if case["class"] == "f32" else "bf16"
        m, heads, kv_heads, d, keys = (case[key] for key in ("m", "heads", "kv_heads", "head_dim", "keys"))
        self.q = worker.tensor(case, "q", kind, m, heads, d).transpose(0, 1).unsqueeze(0).contiguous()
        pair = [worker.tensor(case, name, kind, keys, kv_heads, d).transpose(0, 1).unsqueeze(0).contiguous() for name in ("k", "v")]
        self.sets = worker.copies_for(case, pair)
        self.mask = None
        if m > 1:  # row i stands at position keys - m + i
            self.mask = torch.ones(m, keys, dtype=torch.bool).tril(keys - m)
        self.causal = m == keys and m > 1
        size = 4 if kind == "f32" else 2
        self.output_type = kind
        self.scale = 1 / math.sqrt(d)
        self.detail = f"scaled_dot_product_attention, enable_gqa, {version()}"
        self.bytes = size * d * (2 * keys * kv_heads + 2 * m * heads)

    def call(self, tensors):
        mask = None if self.causal else self.mask
        return F.scaled_dot_product_attention(self.q, tensors[0], tensors[1], attn_mask=mask, is_causal=self.causal, scale=self.scale, enable_gqa=True)

    def output(self):
        return self.call(self.sets[0]).squeeze(0).transpose(0, 1)


class Conv1d(worker.Served):
    """Channels first, as PyTorch wants them; the transposition from and to rows of time is not timed."""

    compare = "bound"
    output_type = "f32"

    def __init__(self, case):
        super().__init__()
        if case["class"] == "f32x":
            raise worker.Refused("PyTorch has no convolution of bf16 weights with fp32 rows")
        kind, size = ("f32", 4) if case["class"] == "f32" else ("bf16", 2)
        n, inputs, taps, m = case["n"], case["inputs"], case["taps"], case["m"] * case["rows"]
        self.dilation, self.output_type = case["dilation"], kind
        rows = m + (taps - 1) * self.dilation
        weight = worker.tensor(case, "weights", kind, n, taps, inputs).transpose(1, 2).contiguous()
        self.bias = worker.tensor(case, "bias", "f32", n).to(weight.dtype)
        self.x = worker.tensor(case, "x", kind, rows, inputs).transpose(0, 1).unsqueeze(0).contiguous()
        self.sets = worker.copies_for(case, [weight])
        self.detail = f"F.conv1d, channels first, {version()}"
        self.bytes = size * (n * taps * inputs + rows * inputs + m * n)

    def call(self, tensors):
        return F.conv1d(self.x, tensors[0], self.bias, dilation=self.dilation)

    def output(self):
        return self.call(self.sets[0]).squeeze(0).transpose(0, 1).contiguous()


class Depthwise(worker.Served):
    """The same, a group for each channel."""

    compare = "bound"

    def __init__(self, case):
        super().__init__()
        kind, size = ("f32", 4) if case["class"] == "f32" else ("bf16", 2)
        n, taps, m = case["n"], case["taps"], case["m"]
        self.dilation, self.output_type = case["dilation"], kind
        rows = m + (taps - 1) * self.dilation
        self.x = worker.tensor(case, "x", kind, rows, n).transpose(0, 1).unsqueeze(0).contiguous()
        self.weight = worker.tensor(case, "weights", "f32", taps, n).transpose(0, 1).unsqueeze(1).contiguous().to(self.x.dtype)
        self.bias = worker.tensor(case, "bias", "f32", n).to(self.x.dtype)
        self.sets = [[]]
        self.detail = f"F.conv1d with a group for each channel, {version()}"
        self.bytes = 4 * n * (taps + 1) + size * n * (rows + m)

    def call(self, tensors):
        return F.conv1d(self.x, self.weight, self.bias, dilation=self.dilation, groups=self.x.shape[1])

    def output(self):
        return self.call(None).squeeze(0).transpose(0, 1).contiguous()


def make(case):
    kinds = {
        "rmsnorm": Rmsnorm,
        "geglu": Gated,
        "swiglu": Gated,
        "headnorm": Headnorm,
        "layernorm": Layernorm,
        "activation": Activation,
        "headgate": Headgate,
        "attention": Attention,
        "conv1d": Conv1d,
        "depthwise": Depthwise,
    }
    if case["op"] not in kinds:
        raise worker.Refused("serves " + ", ".join(kinds))
    return kinds[case["op"]](case)


def serve():
    worker.serve(make)


if __name__ == "__main__":
    serve()
