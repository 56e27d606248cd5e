# SPDX-License-Identifier: Apache-2.0
"""Models in llama.cpp's file format: full shapes, random weights, no vocabulary. Written and quantised once, then kept.

"spark-1.7b": Spark-X2.5-1.7B. "talker-0.6b", "predictor-0.6b": the two language models of Qwen3-TTS-0.6B as llama.cpp's plain Qwen3, of
one head and one table each."""
import os
import struct
import tempfile

SPARK = {"layers": 28, "hidden": 2048, "inner": 6656, "vocabulary": 131072, "heads": 8, "kv_heads": 2, "head_dim": 256}
TALKER = {"layers": 28, "hidden": 1024, "inner": 3072, "vocabulary": 3072, "heads": 16, "kv_heads": 8, "head_dim": 128}
PREDICTOR = dict(TALKER, layers=5, vocabulary=2048)

# Numbers of the file format.
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
TYPE_F32, TYPE_BF16 = 0, 30
ALIGNMENT = 32


def directory():
    return os.environ.get("OMNI_PEER_MODELS") or os.path.join(tempfile.gettempdir(), "omni-peer-models")


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def packed(scalars):
    """Key-value pairs as the file has them."""
    out = []
    for key, (kind, value) in scalars.items():
        bits = text(value) if kind == STRING else struct.pack("<f" if kind == F32 else "<I", value)
        out.append(text(key) + struct.pack("<I", kind) + bits)
    return out


def common_keys(arch, shape):
    return {
        "general.architecture": (STRING, arch),
        "general.name": (STRING, "synthetic"),
        "general.file_type": (U32, 32),
        "tokenizer.ggml.model": (STRING, "none"),
        f"{arch}.block_count": (U32, shape["layers"]),
        f"{arch}.embedding_length": (U32, shape["hidden"]),
        f"{arch}.feed_forward_length": (U32, shape["inner"]),
        f"{arch}.attention.head_count": (U32, shape["heads"]),
        f"{arch}.attention.head_count_kv": (U32, shape["kv_heads"]),
        f"{arch}.attention.key_length": (U32, shape["head_dim"]),
        f"{arch}.attention.value_length": (U32, shape["head_dim"]),
        f"{arch}.attention.layer_norm_rms_epsilon": (F32, 1e-6),
        f"{arch}.vocab_size": (U32, shape["vocabulary"]),
    }


def layer_tensors(i, shape):
    """Names and shapes, rows first, of what both architectures have."""
    q, kv = shape["heads"] * shape["head_dim"], shape["kv_heads"] * shape["head_dim"]
    return [
        (f"blk.{i}.attn_norm.weight", (shape["hidden"],)),
        (f"blk.{i}.attn_qkv.weight", (q + 2 * kv, shape["hidden"])),
        (f"blk.{i}.attn_output.weight", (shape["hidden"], q)),
        (f"blk.{i}.ffn_norm.weight", (shape["hidden"],)),
        (f"blk.{i}.ffn_gate.weight", (shape["inner"], shape["hidden"])),
        (f"blk.{i}.ffn_up.weight", (shape["inner"], shape["hidden"])),
        (f"blk.{i}.ffn_down.weight", (shape["hidden"], shape["inner"])),
    ]


def spark():
    arch = "spark2_5"
    pairs = packed(dict(common_keys(arch, SPARK), **{
        f"{arch}.context_length": (U32, 1048576),
        f"{arch}.attention.sliding_window": (U32, 512),
        f"{arch}.rope.dimension_count": (U32, 64),
        f"{arch}.rope.dimension_count_swa": (U32, 256),
        f"{arch}.rope.freq_base": (F32, 5e6),
        f"{arch}.rope.freq_base_swa": (F32, 1e4),
    }))
    pattern = bytes(0 if i % 4 == 3 else 1 for i in range(SPARK["layers"]))
    pairs.append(text(f"{arch}.attention.sliding_window_pattern") + struct.pack("<IIQ", ARRAY, BOOL, len(pattern)) + pattern)
    tensors = [("token_embd.weight", (SPARK["vocabulary"], SPARK["hidden"])), ("output_norm.weight", (SPARK["hidden"],))]
    for i in range(SPARK["layers"]):
        tensors += layer_tensors(i, SPARK) + [(f"blk.{i}.attn_gate.weight", (SPARK["heads"], SPARK["hidden"]))]
    return pairs, tensors


def qwen3(shape):
    arch = "qwen3"
    pairs = packed(dict(common_keys(arch, shape), **{
        f"{arch}.context_length": (U32, 32768),
        f"{arch}.rope.dimension_count": (U32, shape["head_dim"]),
        f"{arch}.rope.freq_base": (F32, 1e6),
    }))
    tensors = [
        ("token_embd.weight", (shape["vocabulary"], shape["hidden"])),
        ("output.weight", (shape["vocabulary"], shape["hidden"])),
        ("output_norm.weight", (shape["hidden"],)),
    ]
    for i in range(shape["layers"]):
        tensors += layer_tensors(i, shape)
        tensors += [(f"blk.{i}.attn_{each}_norm.weight", (shape["head_dim"],)) for each in "qk"]
    return pairs, tensors


MODELS = {"spark-1.7b": spark, "talker-0.6b": lambda: qwen3(TALKER), "predictor-0.6b": lambda: qwen3(PREDICTOR)}


def write(model, path):
    import numpy

    pairs, tensors = MODELS[model]()
    generator = numpy.random.default_rng(1)
    pool = generator.standard_normal(1 << 24, dtype=numpy.float32) * 0.02
    pool = (pool.view(numpy.uint32) >> 16).astype(numpy.uint16)
    listing, data, offset = [], [], 0
    for name, shape in tensors:
        kind = TYPE_F32 if len(shape) == 1 else TYPE_BF16
        count = int(numpy.prod(shape))
        dims = struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        listing.append(text(name) + dims + struct.pack("<IQ", kind, offset))
        data.append((kind, count))
        size = count * (4 if kind == TYPE_F32 else 2)
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(listing), len(pairs)) + b"".join(pairs) + b"".join(listing))
        file.write(bytes(-file.tell() % ALIGNMENT))
        for kind, count in data:
            if kind == TYPE_F32:
                numpy.ones(count, numpy.float32).tofile(file)
            else:
                while count > 0:  # other values in other tensors: the pool from another place
                    start = int(generator.integers(0, pool.size // 2))
                    part = pool[start : start + min(count, pool.size // 2)]
                    part.tofile(file)
                    count -= part.size
            file.write(bytes(-file.tell() % ALIGNMENT))


def quantised(model, name, file_type):
    """The path of a model as llama.cpp's number `file_type`; made when it is not there yet, which takes minutes."""
    import llama_cpp

    folder = directory()
    os.makedirs(folder, exist_ok=True)
    wanted = os.path.join(folder, f"{model}-{name}.gguf")
    if os.path.exists(wanted):
        return wanted
    source = os.path.join(folder, f"{model}-bf16.gguf")
    if not os.path.exists(source):
        write(model, source + ".part")
        os.rename(source + ".part", source)
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = file_type
    parameters.nthread = os.cpu_count() or 1
    if llama_cpp.llama_model_quantize(source.encode(), (wanted + ".part").encode(), parameters) != 0:
        raise RuntimeError(f"{wanted}: llama_model_quantize failed")
    os.rename(wanted + ".part", wanted)
    return wanted
