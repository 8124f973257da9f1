"""What each example computes, said as its peers want it: which entries are kept, what becomes of a score.

A statement is the second telling of a function of examples/, in the words of FlexAttention: `keep`
gives its mask_mod, `score` its score_mod, `finish` what is left to do with the output once the
log-sum-exp is known. Weights without a softmax need the last: a weight f(s) is the exponential of
log f(s), so softmax weights of log f(s) times the exponential of their log-sum-exp are the f(s)
themselves. `rows` is what becomes of q and k first, as tensors: FlexAttention has no word for it, so peers
are given the result. tests/python/benchmarks/test_variants.py holds each statement against its example, weight by weight.

`a` is what a statement may use: the example's constants and arguments by their names, B, H, G, M, N,
the mask's own numbers, and `tanh`, which a peer may replace by the hardware's.

`tensors` draws the arguments after q, k and v in the example's order: (dimensions, value), where the
dimensions say which of a tensor's axes are batch entries and heads ("B", "H"), or "" for a number.
"""

import dataclasses
import math
from typing import Callable, Optional

import torch


@dataclasses.dataclass(frozen=True)
class Statement:
    keep: Optional[Callable] = None    # a -> mask_mod(b, h, i, j)
    score: Optional[Callable] = None   # a -> score_mod(s, b, h, i, j), after the scaling
    finish: Optional[Callable] = None  # a -> f(output [B, H, M, V] in fp32, lse [B, H, M])
    tensors: Callable = lambda a: {}   # a -> {name: (dimensions, tensor or number)}
    rows: Optional[Callable] = None    # a -> f(q, k), [B, H, S, D], the rows that they become
    capped: bool = False               # has a tanh, for which peers have a faster one
    layout: str = "bhsd"               # of the example's q, k and v
    counts_heads: bool = False         # the example computes with the numbers of its heads
    kernels: dict = dataclasses.field(default_factory=dict)  # {peer: its own words}, peers.py


# ---- masks

def causal(a):
    return lambda b, h, i, j: j <= i


def _window(a):
    return lambda b, h, i, j: (j <= i) & (i - j < a.WINDOW)


def _prefix_documents(a):
    return lambda b, h, i, j: ((a.document[b, i] == a.document[b, j])
                               & ((j <= i) | (j < a.prefix_end[b, i])))


def _prefix(a):
    return lambda b, h, i, j: (j <= i) | (j < a.prefix[b])


def _causal_blockwise(a):
    return lambda b, h, i, j: (j <= i) & ((a.block[b, i] == a.block[b, j]) | (a.block[b, i] == a.last))


def _block_diffusion(a):
    length = (a.N + 1) // 2

    def keep(b, h, i, j):
        noisy_i, noisy_j = i < length, j < length
        block_i, block_j = i % length // 64, j % length // 64
        itself = (block_i == block_j) & (noisy_i == noisy_j)
        return (itself | (noisy_i & ~noisy_j & (block_j < block_i))
                | (~noisy_i & ~noisy_j & (block_j <= block_i)))
    return keep


def _dilated_window(a):
    return lambda b, h, i, j: (j <= i) & (i - j < a.WINDOW) & ((i - j) % 2 == 0)


def _global_window(a):
    return lambda b, h, i, j: (j <= i) & ((i - j < a.WINDOW) | (j < a.GLOBAL) | (i < a.GLOBAL))


def _grid_window(a):
    width, radius = a.WIDTH, a.RADIUS
    return lambda b, h, i, j: (((i // width - j // width).abs() <= radius)
                               & ((i % width - j % width).abs() <= radius))


def _longformer(a):
    return lambda b, h, i, j: ((i - j).abs() < a.WINDOW) | (j < a.GLOBAL) | (i < a.GLOBAL)


def _neighborhood(a):
    half, last = a.KERNEL // 2, a.N - 1 - a.KERNEL // 2
    return lambda b, h, i, j: (i.clamp(half, last) - j).abs() <= half


def _share_question(a):
    return lambda b, h, i, j: ((j <= i) & (a.document[b, i] == a.document[b, j])
                               & ((a.part[b, i] == a.part[b, j]) | (a.part[b, j] == 0)))


def _streaming(a):
    return lambda b, h, i, j: (j <= i) & ((j < a.SINKS) | (j > i - a.WINDOW))


# ---- scores

def _capped(a):
    return lambda s, b, h, i, j: 50.0 * a.tanh(s * 0.02)


def _log_sigmoid(x):
    return -torch.log(1 + torch.exp(-x))  # no score is so low that the exponential overflows


def _sigmoid(a):
    log_keys = math.log(a.N)
    return lambda s, b, h, i, j: _log_sigmoid(s - log_keys)


def _comb(a):
    log_keys = math.log(a.N)
    return lambda s, b, h, i, j: _log_sigmoid(50.0 * a.tanh(s * 0.02) - log_keys)


def _relative_bias(a):
    reach = a.table.shape[1] // 2
    return lambda s, b, h, i, j: s + a.table[h, (j - i).clamp(-reach, reach) + reach]


def _t5_buckets(a):
    """T5 does not scale; where its buckets begin is written out."""
    def score(s, b, h, i, j):
        far = (j - i).abs()
        wide = 8 + sum((far >= first).to(torch.int32) for first in (12, 16, 23, 32, 46, 64, 91))
        bucket = torch.where(far < 8, far, wide) + torch.where(j > i, 16, 0)
        return 8.0 * s + a.table[bucket, h]
    return score


def _temperature(a):
    return lambda s, b, h, i, j: s * (torch.log(torch.floor((i + 1) / 8192.0) + 1.0) * 0.1 + 1.0)


# ---- what is done with the output

def _unnormalised(a):
    return lambda output, lse: output * lse.exp()[..., None]


def _over_seen(a):
    """Over the number of keys that a query sees; a row without a positive score is 0."""
    seen = torch.arange(1, a.M + 1, device=a.device)
    return lambda output, lse: (output * (lse.exp() / seen)[..., None]).nan_to_num()


def _with_one(a):
    return lambda output, lse: output * lse.sigmoid()[..., None]


def _with_sink(a):
    return lambda output, lse: output * (lse - a.sinks[:, None]).sigmoid()[..., None]


def _gated(a):
    return lambda output, lse: output * a.gates.sigmoid()[:, None, None]


# ---- arguments

def _slopes(a):
    return {"slopes": ("H", torch.exp2(-8 * torch.arange(1, a.H + 1) / a.H))}


def _uniform(*names, low, high):
    return lambda a: {name: ("H", torch.rand(a.H) * (high - low) + low) for name in names}


def _normal(name):
    return lambda a: {name: ("H", torch.randn(a.H))}


def _prefixes(a):
    return {"prefix": ("B", torch.full((a.B,), a.prefix_length, dtype=torch.int32))}


def _documents(a):
    document = torch.arange(a.M) // a.document_length
    return {"document": ("B S", document.expand(a.B, a.M).contiguous())}


def _lengths(a):
    """An even spread up to N: N / B, 2 N / B, ..."""
    return a.N * torch.arange(1, a.B + 1) // a.B


def _questions(a):
    """Documents of a question, which is a quarter of each, and three answers as long."""
    position, size = torch.arange(a.M, dtype=torch.int32), a.document_length
    return {"document": ("B S", (position // size).expand(a.B, a.M).contiguous()),
            "part": ("B S", (position % size // (size // 4)).expand(a.B, a.M).contiguous())}


def _blocks(a, count=8):
    """Blocks of random lengths, at least 1."""
    ends = 1 + torch.randperm(a.M - 1)[: count - 1]
    number = torch.zeros(a.M, dtype=torch.int32)
    number[ends] = 1
    number = number.cumsum(0, dtype=torch.int32)
    return {"block": ("B S", number.expand(a.B, a.M).contiguous()), "last": ("", count - 1)}


def _intervals(a):
    start = torch.arange(a.M, dtype=torch.int32) // a.document_length * a.document_length
    end = (start + a.document_length).clamp(max=a.N)
    return {name: ("B S", t.expand(a.B, a.M).contiguous())
            for name, t in (("start", start), ("end", end))}


def _tree(a):
    """A binary tree of M draft tokens behind a prompt of N - M."""
    ancestor, prompt = torch.zeros(a.M, a.N, dtype=torch.bool), a.N - a.M
    for node in range(a.M):
        at = node
        while at >= 0:
            ancestor[node, prompt + at] = True
            at = (at + 1) // 2 - 1
    return {"ancestor": ("M N", ancestor), "prompt": ("", prompt)}


def _words(a):
    """The same tree, for each batch entry, 32 keys a word."""
    tree = _tree(a)
    keep = (torch.arange(a.N) < tree["prompt"][1]) | tree["ancestor"][1]
    keep = torch.nn.functional.pad(keep.long(), (0, -a.N % 32)).unflatten(1, (-1, 32))
    words = (keep << torch.arange(32)).sum(-1).to(torch.int32)
    return {"words": ("B M W", words.expand(a.B, *words.shape).contiguous())}


def _block_table(a):
    """A quarter of the blocks, the first of each row and the diagonal."""
    rows, columns = -(-a.M // a.BLOCK), -(-a.N // a.BLOCK)
    table = torch.rand(a.B, a.H, rows, columns) < 0.25
    table |= torch.eye(rows, columns, dtype=torch.bool)
    table[..., 0] = True
    return {"table": ("B H R C", table)}


def _prefixes_of_documents(a):
    """A quarter of each document."""
    document, size = torch.arange(a.M) // a.document_length, a.document_length
    return {name: ("B S", t.expand(a.B, a.M).contiguous())
            for name, t in (("document", document), ("prefix_end", document * size + size // 4))}


def _decay(a):
    return {"decay": ("B H S", torch.sigmoid(torch.randn(a.B, a.H, a.M) + 4).log().cumsum(-1))}


def _table(a):
    return {"table": ("H T", torch.randn(a.H, 2 * a.reach + 1))}


def _bias(a):
    return {"bias": ("1 H M N", torch.randn(1, a.H, a.M, a.N).to(a.dtype))}


# ---- rows of q and k

def _normalised(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def _turned(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def _turned_pairs(x, cos, sin):
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


def _qk_norm(a):
    return lambda q, k: (_normalised(q, a.q_weight), _normalised(k, a.k_weight))


def _rope(a):
    return lambda q, k: (_turned(q, a.cos, a.sin), _turned(k, a.cos, a.sin))


def _qk_norm_rope(a):
    cos, sin = a.cos.unsqueeze(1), a.sin.unsqueeze(1)
    return lambda q, k: (_turned(_normalised(q, a.q_weight), cos, sin),
                         _turned(_normalised(k, a.k_weight), cos, sin))


def _rope_interleaved(a):
    return lambda q, k: (_turned_pairs(q, a.cos, a.sin), _turned_pairs(k, a.cos, a.sin))


def _angles(a, base, columns):
    """[S, columns]: of each position, an angle for a pair of columns, once or twice."""
    rates = base ** (-torch.arange(0, a.D, 2) / a.D)
    return torch.outer(torch.arange(a.N), rates).repeat(1, columns * 2 // a.D)


def _weights(a):
    return {name: ("D", torch.randn(a.D).to(a.dtype)) for name in ("q_weight", "k_weight")}


def _tables(base, halves=False, entries=False, dtype=None):
    """The cosines and sines of positions: one column for each pair, or two; one table or one a batch
    entry."""
    def make(a):
        angles = _angles(a, base, a.D // 2 if halves else a.D)
        angles = angles.expand(a.B, -1, -1) if entries else angles
        dims = "B S D" if entries else "S D"
        return {name: (dims, f(angles).to(dtype or torch.float32))
                for name, f in (("cos", torch.cos), ("sin", torch.sin))}
    return make


# ---- each example

STATEMENTS = {
    "alibi": Statement(
        causal, lambda a: lambda s, b, h, i, j: s + a.slopes[h] * (j - i), tensors=_slopes,
        kernels={"score": "alibi", "known": "alibi_known"}),
    "alibi_heads": Statement(
        causal, lambda a: lambda s, b, h, i, j: s + torch.exp2((h + 1) * -0.5) * (j - i),
        counts_heads=True, kernels={"score": "alibi_known"}),
    "alibi_symmetric": Statement(
        None, lambda a: lambda s, b, h, i, j: s - a.slopes[h] * (i - j).abs(), tensors=_slopes),
    "block_causal": Statement(lambda a: lambda b, h, i, j: i // 256 >= j // 256,
                              kernels={"mask": "blocks"}),
    "block_diffusion": Statement(_block_diffusion),
    "block_table": Statement(lambda a: lambda b, h, i, j: a.table[b, h, i // a.BLOCK, j // a.BLOCK],
                             tensors=_block_table),
    "bottom_right": Statement(lambda a: lambda b, h, i, j: j <= i + (a.N - a.M),
                              kernels={"causal": True}),
    "causal": Statement(causal, layout="bshd", kernels={"causal": True}),
    "causal_blockwise": Statement(_causal_blockwise, tensors=_blocks),
    "chunked": Statement(
        lambda a: lambda b, h, i, j: (j <= i) & (j // a.CHUNK == i // a.CHUNK), _temperature),
    "comb": Statement(_prefix, _comb, _unnormalised, _prefixes, capped=True),
    "dense_bias": Statement(None, lambda a: lambda s, b, h, i, j: s + a.bias[0, h, i, j],
                            tensors=_bias, kernels={"attn_mask": "bias"}),
    "dilated": Statement(lambda a: lambda b, h, i, j: (j <= i) & ((i - j) % 4 == 0),
                         kernels={"mask": "dilated"}),
    "dilated_window": Statement(_dilated_window),
    "documents": Statement(
        lambda a: lambda b, h, i, j: (j <= i) & (a.document[b, i] == a.document[b, j]),
        tensors=_documents, kernels={"mask": "documents", "packed": True}),
    "fox_decay": Statement(
        causal, lambda a: lambda s, b, h, i, j: s + (a.decay[b, h, i] - a.decay[b, h, j]),
        tensors=_decay),
    "full": Statement(kernels={"causal": False}),
    "gated_heads": Statement(finish=_gated, tensors=_normal("gates")),
    "global_window": Statement(_global_window),
    "grid_window": Statement(_grid_window),
    "head_windows": Statement(
        lambda a: lambda b, h, i, j: (j <= i) & (i - j < a.windows[h]),
        tensors=lambda a: {"windows": ("H", a.N // a.H * torch.arange(1, a.H + 1, dtype=torch.int32))}),
    "kerple": Statement(
        causal, lambda a: lambda s, b, h, i, j:
        s - a.r1[h] * torch.log(1 + a.r2[h] * (i - j).clamp(min=0)),
        tensors=_uniform("r1", "r2", low=0.1, high=1.1)),
    "key_lengths": Statement(
        lambda a: lambda b, h, i, j: j < a.lengths[b],
        tensors=lambda a: {"lengths": ("B", _lengths(a).to(torch.int32))}),
    "key_padding": Statement(
        lambda a: lambda b, h, i, j: a.valid[b, j],
        tensors=lambda a: {"valid": ("B S", torch.arange(a.N)[None] < _lengths(a)[:, None])}),
    "log_scale": Statement(
        causal, lambda a: lambda s, b, h, i, j: s * (a.factors[h] * torch.log(i + 1.0)),
        tensors=_uniform("factors", low=0.2, high=0.5)),
    "longformer": Statement(_longformer),
    "mla_prefill": Statement(causal, kernels={"causal": True}),
    "neighborhood": Statement(_neighborhood),
    "prefix_documents": Statement(_prefix_documents, tensors=_prefixes_of_documents),
    "prefix_lm": Statement(_prefix, tensors=_prefixes, kernels={"mask": "prefix",
                                                                "known": "prefix_known"}),
    "qk_norm": Statement(causal, rows=_qk_norm, tensors=_weights, kernels={"causal": True}),
    "qk_norm_rope": Statement(
        causal, rows=_qk_norm_rope, kernels={"causal": True},
        tensors=lambda a: {**_weights(a), **_tables(1000000.0, entries=True)(a)}),
    "relative_bias": Statement(None, _relative_bias, tensors=_table, kernels={"score": "relative"}),
    "relu": Statement(causal, lambda a: lambda s, b, h, i, j: torch.log(s.relu()), _over_seen),
    "relu_squared": Statement(causal, lambda a: lambda s, b, h, i, j: 2 * torch.log(s.relu())),
    "rope": Statement(causal, rows=_rope, tensors=_tables(10000.0, dtype=torch.bfloat16),
                      kernels={"causal": True}),
    "rope_interleaved": Statement(causal, rows=_rope_interleaved, kernels={"causal": True},
                                  tensors=_tables(10000.0, halves=True)),
    "row_intervals": Statement(
        lambda a: lambda b, h, i, j: (a.start[b, i] <= j) & (j < a.end[b, i]), tensors=_intervals),
    "share_question": Statement(_share_question, tensors=_questions),
    "sigmoid": Statement(causal, _sigmoid, _unnormalised),
    "sink": Statement(causal, None, _with_sink, _normal("sinks"), kernels={"sink": "sinks"}),
    "sliding_window": Statement(_window, kernels={"causal": True, "window": True}),
    "softcap": Statement(causal, _capped, capped=True, kernels={"causal": True, "cap": 50.0,
                                                                "score": "capped"}),
    "softcap_window": Statement(_window, _capped, capped=True,
                                kernels={"causal": True, "window": True, "cap": 50.0}),
    "softmax_one": Statement(finish=_with_one),
    "streaming": Statement(_streaming, kernels={"mask": "columns"}),
    "t5_buckets": Statement(None, _t5_buckets, tensors=lambda a: {
        "table": ("T H", torch.randn(a.BUCKETS, a.H))}),
    "tree_bits": Statement(
        lambda a: lambda b, h, i, j: (a.words[b, i, j // 32] >> (j % 32)) & 1 == 1, tensors=_words),
    "tree_mask": Statement(lambda a: lambda b, h, i, j: (j < a.prompt) | a.ancestor[i, j],
                           tensors=_tree),
    "with_lse": Statement(kernels={"causal": False}),
}
