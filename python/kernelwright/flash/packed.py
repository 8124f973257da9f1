"""`flash_attn_varlen_func`: sequences of any lengths, one behind the other.

Each query sees a range of keys: those of its sequence, less what causality and the window take away. The ranges are made of the
offsets on the GPU, by a few small kernels, and are an argument of the attention kernel, which visits the blocks of keys in which a
range of its queries lies. Nothing on the host depends on lengths, so a graph replays with others. A tile of queries may hold
several sequences; where these are much shorter than a tile, part of its products is masked away.
"""

import torch

from ..compiling.kinds import Kinds
from ..errors import ArgumentError
from .arguments import Options, integers, slopes, tensors
from .specifications import packed_attention_of

_kinds = Kinds()
_OFFSETS = (0, 100, 256)  # of examples, so that another process finds the kernel in the cache


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
                           causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
                           return_attn_probs=False, block_table=None, *, check_inputs=False, function=None, **others):
    """Attention of packed sequences, as flash_attn.flash_attn_varlen_func.

    q: [T, H, D], bf16 or f16, on a GPU, any strides: the queries of all sequences.
    k, v: [S, G, D] and [S, G, V]: their keys and values; G divides H.
    cu_seqlens_q, cu_seqlens_k: int32 [B + 1]: where each sequence begins, and the last one ends; from 0.
    max_seqlen_q, max_seqlen_k: not read.
    dropout_p: 0.
    softmax_scale: of the scores; 1 / sqrt(D) by default.
    causal: whether a query sees no key behind its place; a sequence's last query stands at its last key's.
    window_size: (left, right), keys that a query sees before and behind its place; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    alibi_slopes: fp32 [H]: slope * distance is taken from each score; or None.
    deterministic: gradients have the same bits in every run.
    return_attn_probs: gives (output, log-sums [H, T] in fp32, None).
    block_table: None: the keys of a sequence lie one behind the other.
    check_inputs: whether the offsets are read and checked, for which the host waits. Without it wrong ones give wrong rows, and
        nothing is read beyond q, k and v.
    function: one's own attention(q, k, v, start, end, place) in plain PyTorch, of [1, T, H, D], [1, S, G, D] and [1, S, G, V]: query t
        may see the keys start[0, t] <= j < end[0, t], which causal and window_size leave it, and stands at place[0, t] among them
        (int32 [1, T]); other options are its own then. It gives [1, T, H, V].
    others: options of other versions; None, or what they are by default.

    Returns [T, H, V] in v's type; queries beyond the last offset give 0. Raises ArgumentError for what a kernel has not, by its name,
    and what `compile` and a `Compiled` raise."""
    name = "flash_attn_varlen_func"
    tensors(name, ("length of all", "heads", "head dimension"), q=q, k=k, v=v)
    said = Options(name, q, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, {"block_table": block_table, **others})
    slopes(name, alibi_slopes, (q.shape[1],))
    entries = cu_seqlens_q.shape[0] if isinstance(cu_seqlens_q, torch.Tensor) and cu_seqlens_q.dim() == 1 else 2
    for which, offsets, x in (("cu_seqlens_q", cu_seqlens_q, q), ("cu_seqlens_k", cu_seqlens_k, k)):
        integers(name, which, offsets, (max(entries, 2),), q.device)
        if check_inputs:
            _check(name, which, offsets.tolist(), x.shape[0])

    if function is not None and (said.of_scores or return_attn_probs):
        raise ArgumentError(name, "function", "is given beside options of scores or log-sums", "have them in it")

    def given(q, k, v, offsets_q, offsets_k):
        start, end, place = key_ranges(offsets_q, offsets_k, q.shape[1], said.causal, said.left, said.right)
        if function is not None:
            return q, k, v, start, end, place
        return q, k, v, said.scale, start, end, place if alibi_slopes is not None else None, alibi_slopes

    def made():
        from .. import compile
        offsets = torch.tensor(_OFFSETS, dtype=torch.int32, device=q.device)
        examples = (x.new_zeros(1, _OFFSETS[-1], *x.shape[1:]) for x in (q, k, v))
        options = {"deterministic": True} if deterministic else {}
        return compile(function or packed_attention_of(*kind), given(*examples, offsets, offsets), strict=True, **options)

    kind = (said.softcap, alibi_slopes is not None, bool(return_attn_probs))
    shape = (q.dtype, k.dtype, v.dtype, q.device, *q.shape[1:], *k.shape[1:], v.shape[-1], bool(deterministic))
    output = _kinds.call((function, *kind, *shape), made, given(q[None], k[None], v[None], cu_seqlens_q, cu_seqlens_k))
    return (output[0][0], output[1][0], None) if return_attn_probs else output[0]


def key_ranges(offsets_q, offsets_k, queries, causal=False, left=-1, right=-1):
    """For each query of packed sequences, the keys start <= j < end that it sees and its place among the keys, as int32 [1, queries].

    offsets_q, offsets_k: int32 [B + 1], where each sequence's queries and keys begin, and the last one's end.
    causal, left, right: as attention_of's."""
    t = torch.arange(queries, dtype=torch.int32, device=offsets_q.device)
    sequence = torch.searchsorted(offsets_q[1:], t, right=True, out_int32=True)
    begin = torch.cat([offsets_k, offsets_k[-1:]])  # queries behind the last sequence: of one without keys
    start, end = begin[sequence], begin[sequence + 1]
    last = torch.cat([offsets_q[1:], offsets_q[-1:]])[sequence]
    place = end - (last - t)
    if left >= 0:
        start = torch.maximum(start, place - left)
    if causal or right >= 0:
        end = torch.minimum(end, place + 1 + max(right, 0))
    return start[None], end[None], place[None]


def _check(function, name, offsets, rows):
    """Raises where these offsets are of no sequences of a tensor of so many rows: with the sequence and the two numbers."""
    if offsets[0] != 0:
        raise ArgumentError(function, name, f"begins with {offsets[0]}", "begin with 0")
    for sequence, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        if end < begin:
            raise ArgumentError(function, name, f"has sequence {sequence} from {begin} to {end}", "not decrease")
        if end > rows:
            raise ArgumentError(function, name, f"has sequence {sequence} end at {end}", f"end within the {rows} rows that there are")
