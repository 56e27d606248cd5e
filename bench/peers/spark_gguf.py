# SPDX-License-Identifier: Apache-2.0
"""Spark-X2.5-1.7B in llama.cpp's file format: full shapes, random weights, no vocabulary. Written and quantised once, then kept."""
import os
import struct
import tempfile

LAYERS, HIDDEN, INNER, VOCABULARY = 28, 2048, 6656, 131072
HEADS, KV_HEADS, HEAD_DIM = 8, 2, 256

# Numbers of the file format.
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
TYPE_F32, TYPE_BF16 = 0, 30
ALIGNMENT = 32


def directory():
    return os.environ.get("OMNI_PEER_MODELS") or os.path.join(tempfile.gettempdir(), "omni-peer-models")


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def keys():
    arch = "spark2_5"
    full = [i % 4 == 3 for i in range(LAYERS)]
    scalars = {
        "general.architecture": (STRING, arch),
        "general.name": (STRING, "synthetic"),
        "general.file_type": (U32, 32),
        "tokenizer.ggml.model": (STRING, "none"),
        f"{arch}.block_count": (U32, LAYERS),
        f"{arch}.context_length": (U32, 1048576),
        f"{arch}.embedding_length": (U32, HIDDEN),
        f"{arch}.feed_forward_length": (U32, INNER),
        f"{arch}.attention.head_count": (U32, HEADS),
        f"{arch}.attention.head_count_kv": (U32, KV_HEADS),
        f"{arch}.attention.key_length": (U32, HEAD_DIM),
        f"{arch}.attention.value_length": (U32, HEAD_DIM),
        f"{arch}.attention.layer_norm_rms_epsilon": (F32, 1e-6),
        f"{arch}.attention.sliding_window": (U32, 512),
        f"{arch}.rope.dimension_count": (U32, 64),
        f"{arch}.rope.dimension_count_swa": (U32, 256),
        f"{arch}.rope.freq_base": (F32, 5e6),
        f"{arch}.rope.freq_base_swa": (F32, 1e4),
        f"{arch}.vocab_size": (U32, VOCABULARY),
    }
    out = []
    for key, (kind, value) in scalars.items():
        packed = text(value) if kind == STRING else struct.pack("<f" if kind == F32 else "<I", value)
        out.append(text(key) + struct.pack("<I", kind) + packed)
    pattern = bytes(0 if f else 1 for f in full)
    out.append(text(f"{arch}.attention.sliding_window_pattern") + struct.pack("<IIQ", ARRAY, BOOL, LAYERS) + pattern)
    return out


def tensors():
    """Names and shapes, rows first."""
    out = [("token_embd.weight", (VOCABULARY, HIDDEN)), ("output_norm.weight", (HIDDEN,))]
    for i in range(LAYERS):
        out += [
            (f"blk.{i}.attn_norm.weight", (HIDDEN,)),
            (f"blk.{i}.attn_qkv.weight", ((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN)),
            (f"blk.{i}.attn_gate.weight", (HEADS, HIDDEN)),
            (f"blk.{i}.attn_output.weight", (HIDDEN, HEADS * HEAD_DIM)),
            (f"blk.{i}.ffn_norm.weight", (HIDDEN,)),
            (f"blk.{i}.ffn_gate.weight", (INNER, HIDDEN)),
            (f"blk.{i}.ffn_up.weight", (INNER, HIDDEN)),
            (f"blk.{i}.ffn_down.weight", (HIDDEN, INNER)),
        ]
    return out


def write(path):
    import numpy

    generator = numpy.random.default_rng(1)
    pool = generator.standard_normal(1 << 24, dtype=numpy.float32) * 0.02
    pool = (pool.view(numpy.uint32) >> 16).astype(numpy.uint16)
    listing, data, offset = [], [], 0
    for name, shape in tensors():
        kind = TYPE_F32 if len(shape) == 1 else TYPE_BF16
        count = int(numpy.prod(shape))
        dims = struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        listing.append(text(name) + dims + struct.pack("<IQ", kind, offset))
        data.append((kind, count))
        size = count * (4 if kind == TYPE_F32 else 2)
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    pairs = keys()
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


def quantised(name, file_type):
    """The path of the model as llama.cpp's number `file_type`; made when it is not there yet, which takes minutes."""
    import llama_cpp

    folder = directory()
    os.makedirs(folder, exist_ok=True)
    wanted = os.path.join(folder, f"spark-1.7b-{name}.gguf")
    if os.path.exists(wanted):
        return wanted
    source = os.path.join(folder, "spark-1.7b-bf16.gguf")
    if not os.path.exists(source):
        write(source + ".part")
        os.rename(source + ".part", source)
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = file_type
    parameters.nthread = os.cpu_count() or 1
    if llama_cpp.llama_model_quantize(source.encode(), (wanted + ".part").encode(), parameters) != 0:
        raise RuntimeError(f"{wanted}: llama_model_quantize failed")
    os.rename(wanted + ".part", wanted)
    return wanted
