#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference implementation of Qwen3-TTS on random weights of the 0.6B shape, as arms of `omni-bench --op speech`:
`--arms +reference=cmd:'... qwen_tts_model.py --bf16'` (or `--fp32`).

Its own modules and its own generate(), called as its model class calls them. Left out is what costs no time a frame: the table of
text embeddings is small (rows of text are random), and the encoders are not built."""
import contextlib
import sys
import time

import worker

worker.with_huge_pages()

import torch  # noqa: E402
from transformers.cache_utils import DynamicCache  # noqa: E402
from transformers.modeling_utils import no_init_weights  # noqa: E402

with contextlib.redirect_stdout(sys.stderr):  # it prints warnings on import, which must not look like answers
    from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSTalkerConfig
    from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSTalkerForConditionalGeneration
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2DecoderConfig
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Decoder

TYPES = {"--bf16": torch.bfloat16, "--fp32": torch.float32}
GROUPS, CODES, EOS, DRIFT = 16, 2048, 2150, 512

STACK = {"hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
         "rms_norm_eps": 1e-6, "rope_theta": 1000000, "num_code_groups": GROUPS}
PREDICTOR = dict(STACK, vocab_size=CODES, num_hidden_layers=5, max_position_embeddings=65536)
TALKER = dict(STACK, vocab_size=3072, num_hidden_layers=28, max_position_embeddings=32768, text_hidden_size=2048, text_vocab_size=64,
              rope_scaling={"interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"}, pad_token_id=None,
              codec_eos_token_id=EOS, codec_think_id=2154, codec_nothink_id=2155, codec_think_bos_id=2156, codec_think_eos_id=2157,
              codec_pad_id=2148, codec_bos_id=2149, code_predictor_config=PREDICTOR)
DECODER = {"codebook_dim": 512, "codebook_size": CODES, "latent_dim": 1024, "hidden_size": 512, "intermediate_size": 1024,
           "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64, "sliding_window": 72,
           "rope_theta": 10000, "rms_norm_eps": 1e-5, "decoder_dim": 1536, "num_quantizers": GROUPS, "upsample_rates": [8, 5, 4, 3],
           "upsampling_ratios": [2, 2]}
SAMPLING = {"do_sample": True, "top_k": 50, "top_p": 1.0, "temperature": 0.9}


def built(make, kind):
    """A module with random weights, made in its own type so that it is never there twice; its own initialisation takes a minute."""
    torch.set_default_dtype(kind)
    try:
        with no_init_weights():
            module = make()
    finally:
        torch.set_default_dtype(torch.float32)
    pool = torch.randn(1 << 22, generator=torch.Generator().manual_seed(1)).mul_(0.02).to(kind)
    for each in module.modules():
        if isinstance(each, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.ConvTranspose1d, torch.nn.Embedding)):
            for part in each.weight.data.view(-1).split(pool.numel()):
                part.copy_(pool[: part.numel()])
        elif isinstance(each, torch.nn.LayerNorm):
            each.weight.data.fill_(1)
        if getattr(each, "bias", None) is not None:
            each.bias.data.zero_()
    return module.eval().to(kind)


def make_talker(kind):
    return built(lambda: Qwen3TTSTalkerForConditionalGeneration(Qwen3TTSTalkerConfig(**TALKER)), kind)


def make_decoder(kind):
    decoder = built(lambda: Qwen3TTSTokenizerV2Decoder(Qwen3TTSTokenizerV2DecoderConfig(**DECODER)), kind)
    for name, parameter in decoder.named_parameters():
        if name.endswith("embedding_sum"):  # zeros otherwise
            parameter.data.normal_()
    return decoder


class Part(worker.Served):
    """`m` frames after a prompt of `depth` rows."""

    def __init__(self, case):
        super().__init__()
        self.m, self.depth, self.kind = case["m"], case["depth"], TYPES[sys.argv[-1]]
        self.sets = [[]]
        self.detail = f"qwen-tts, torch {torch.__version__}, {str(self.kind)[6:]}"

    def rows(self, count):
        return torch.randn(1, count, STACK["hidden_size"]).to(self.kind)

    def prepare(self):
        """Not timed."""

    def warm(self):
        self.call([])

    def run(self, calls):
        self.prepare()
        self.warm()
        spent = 0
        for _ in range(calls):
            self.prepare()
            begin = time.perf_counter_ns()
            self.call([])
            spent += time.perf_counter_ns() - begin
        return spent


class TalkerStep(Part):
    def __init__(self, case):
        super().__init__(case)
        self.talker = make_talker(self.kind)
        self.prompt, self.row = self.rows(self.depth), self.rows(1)
        self.position = None

    def forward(self, rows):
        at = torch.arange(self.position, self.position + rows.shape[1])
        hidden = self.talker.model(inputs_embeds=rows, past_key_values=self.cache, use_cache=True, cache_position=at,
                                   position_ids=at.view(1, 1, -1).expand(3, 1, -1)).last_hidden_state
        self.position += rows.shape[1]
        return self.talker.codec_head(hidden[:, -1])

    def prepare(self):
        if self.position is None or self.position >= self.depth + DRIFT:
            self.cache, self.position = DynamicCache(), 0
            self.forward(self.prompt)

    def warm(self):
        self.call([])
        self.prepare()

    def call(self, tensors):
        return self.forward(self.row)


class PredictorFrame(Part):
    def __init__(self, case):
        super().__init__(case)
        self.predictor = make_talker(self.kind).code_predictor
        self.input = self.rows(2)
        self.detail += ", sampled"

    def call(self, tensors):
        return self.predictor.generate(inputs_embeds=self.input, max_new_tokens=GROUPS - 1, output_hidden_states=True,
                                       return_dict_in_generate=True, **SAMPLING)


class CodecFrames(Part):
    """Without what went before: the reference decodes from scratch."""

    def __init__(self, case):
        super().__init__(case)
        self.decoder = make_decoder(self.kind)
        self.codes = torch.randint(0, CODES, (1, GROUPS, self.m))

    def call(self, tensors):
        return self.decoder(self.codes)


class Speech(Part):
    """From the rows of the prompt on, all samples at the end: it has no other way."""

    def __init__(self, case):
        super().__init__(case)
        self.talker, self.decoder = make_talker(self.kind), make_decoder(self.kind)
        self.prompt, self.pad = self.rows(self.depth), self.rows(1)
        self.detail += ", sampled"

    def warm(self):
        self.decoder(torch.zeros(1, GROUPS, 1, dtype=torch.long))

    def call(self, tensors):
        # An end of speech, which random weights may choose at once, is suppressed with the other control ids.
        result = self.talker.generate(
            inputs_embeds=self.prompt, attention_mask=torch.ones(1, self.depth, dtype=torch.long), trailing_text_hidden=self.pad,
            tts_pad_embed=self.pad, max_new_tokens=self.m + 1, min_new_tokens=2, eos_token_id=EOS, repetition_penalty=1.05,
            suppress_tokens=list(range(CODES, TALKER["vocab_size"])), output_hidden_states=True, return_dict_in_generate=True,
            **SAMPLING, **{f"subtalker_{key.replace('do_', 'do')}": value for key, value in SAMPLING.items()})
        codes = torch.stack([states[-1] for states in result.hidden_states if states[-1] is not None], dim=1)
        if codes.shape[1] != self.m:
            raise RuntimeError(f"{codes.shape[1]} frames, not {self.m}")
        return self.decoder.chunked_decode(codes.transpose(1, 2))


PARTS = {"talker": TalkerStep, "predictor": PredictorFrame, "codec": CodecFrames, "whole": Speech}


def make(case):
    part = case.get("shape", "").partition("-")[0]
    if case["op"] != "speech":
        raise worker.Refused("serves speech")
    if part not in PARTS:
        raise worker.Refused("has no audio before the last frame" if part == "first" else f"no part {part}")
    return PARTS[part](case)


def serve():
    worker.serve(make)


if __name__ == "__main__":
    serve()
