"""`flash_attn_with_kvcache`: the last queries of sequences, and a cache of keys and values with room for more.

New keys and values are written into the cache, and rotated before, by PyTorch's own operators; the attention is one kernel. Lengths
are read on the GPU, so a graph replays with others.
"""

import torch

from ..compiling.kinds import Kinds
from ..errors import ArgumentError
from .arguments import Options, integers, slopes, tensors
from .caches import BATCH, KEYS, Pages, Rows
from .specifications import cached_attention_of

_kinds = Kinds()
_QUERIES = 128  # of examples, where there are several


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
                            return_softmax_lse=False, *, check_inputs=False, function=None, **others):
    """Attention of new queries to a cache of keys and values, as flash_attn.flash_attn_with_kvcache.

    q: [B, M, H, D], bf16 or f16, on a GPU, any strides: one token of each sequence, or several.
    k_cache, v_cache: [B, N, G, D] and [B, N, G, V], with room for N keys each; G divides H. With block_table [pages, R, G, D] and
        [pages, R, G, V], in pages of R = 16, 32 or a multiple of 64 rows.
    k, v: [B, L, G, D] and [B, L, G, V]: written into the cache behind what it has, before the attention; or None.
    rotary_cos, rotary_sin: [at least N, R / 2] in q's type: the first R elements of k and q are rotated by their places; needs k.
    cache_seqlens: int32 [B], or a number for all: how many keys the cache has, without the new ones; N by default.
    cache_batch_idx, cache_leftpad: None.
    block_table: int32 [B, entries], the numbers of each sequence's pages, in their order; N is entries * R. Entries beyond a
        sequence's length may hold anything.
    softmax_scale: of the scores; 1 / sqrt(D) by default.
    causal: whether a query sees no key behind its place; the last query stands at the last key's.
    window_size: (left, right), keys that a query sees before and behind its place; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    rotary_interleaved: whether elements 2 i and 2 i + 1 are rotated together, or i and i + R / 2.
    alibi_slopes: fp32 [H] or [B, H]: slope * distance is taken from each score; or None.
    num_splits: 0, or 1: the kernel decides.
    return_softmax_lse: gives (output, log-sums [B, H, M] in fp32).
    check_inputs: whether the lengths and the table are read and checked, for which the host waits. Without it no key beyond the cache
        is read, a page that is not there counts as zeros, and new keys beyond the cache end in PyTorch's assertion on the device.
    function: one's own attention(q, k, v, lengths) in plain PyTorch, of [B, M, H, D], caches [B, N, G, D], and how many keys of each entry there
        are, the new ones among them (int32 [B]), to which it keeps; options of scores and keys are its own then. It gives [B, M, H, V].
    others: options of other versions; None, or what they are by default.

    Returns [B, M, H, V] in v_cache's type; without gradients. Raises ArgumentError for what a kernel has not, by its name, and what
    `compile` and a `Compiled` raise."""
    name = "flash_attn_with_kvcache"
    tensors(name, ("batch", "length", "heads", "head dimension"), q=q, k_cache=k_cache, v_cache=v_cache)
    others = {"cache_batch_idx": cache_batch_idx, "cache_leftpad": cache_leftpad, "num_splits": num_splits, **others}
    said = Options(name, q, 0.0, softmax_scale, causal, window_size, softcap, alibi_slopes, others)
    slopes(name, alibi_slopes, (q.shape[2],), (q.shape[0], q.shape[2]))
    cache = Rows(name, q, k_cache, v_cache) if block_table is None else Pages(name, q, k_cache, v_cache, block_table)
    (B, M, H, D), N = q.shape, cache.keys
    lengths = torch.full((B,), N, dtype=torch.int32, device=q.device) if cache_seqlens is None else cache_seqlens
    if isinstance(lengths, int):
        lengths = torch.full((B,), lengths, dtype=torch.int32, device=q.device)
    integers(name, "cache_seqlens", lengths, (B,), q.device)
    if function is not None and (said.of_scores or said.of_keys or return_softmax_lse):
        raise ArgumentError(name, "function", "is given beside options of FlashAttention's", "have them in it")
    new = 0 if k is None else k.shape[1]
    if check_inputs:
        held = lengths.tolist()
        for entry, length in enumerate(held):
            if not 0 <= length <= N - new:
                raise ArgumentError(name, "cache_seqlens", f"is {length} for entry {entry}" + (f", and {new} keys are new" if new else ""),
                                    f"leave all keys within the {N} that the cache has room for")
        cache.refuse(name, [length + new for length in held])
    if rotary_cos is not None or rotary_sin is not None:
        if k is None or rotary_cos is None or rotary_sin is None:
            raise ArgumentError(name, "rotary_cos", "is given without all of rotary_sin, k and v", "be given with them, or not at all")
        moves = said.causal or said.left >= 0 or said.right >= 0  # else all queries stand at the first new key's place
        q = rotated(q, rotary_cos, rotary_sin, lengths, rotary_interleaved, 1 if moves else 0)
        k = rotated(k, rotary_cos, rotary_sin, lengths, rotary_interleaved, 1)
    if (k is None) != (v is None):
        raise ArgumentError(name, "v" if v is None else "k", "is None", f"be given, as {'k' if v is None else 'v'} is")
    if k is not None:
        if cache_seqlens is None:
            raise ArgumentError(name, "cache_seqlens", "is None", "be given, as k is: new keys are written behind what the cache has")
        for which, x, held in (("k", k, k_cache), ("v", v, v_cache)):
            if x.shape != (B, new, *held.shape[2:]) or x.dtype != held.dtype:
                named = str(x.dtype).split(".")[1]
                raise ArgumentError(name, which, f"is {named} {list(x.shape)}",
                                    f"be {str(held.dtype).split('.')[1]} {[B, new, *held.shape[2:]]}, as {which}_cache")
            cache.write(held, lengths[:, None] + torch.arange(new, device=q.device), x)
        lengths = lengths + new

    def made():
        from .. import compile
        queries = q.new_zeros(BATCH, 1 if M == 1 else _QUERIES, H, D)
        example = torch.tensor([KEYS, 300], dtype=torch.int32, device=q.device)
        if function is not None:
            return compile(cache.specification(function), (queries, *cache.examples(), example), strict=True)
        of_heads = None if alibi_slopes is None else alibi_slopes.new_ones(*([BATCH] if alibi_slopes.dim() == 2 else []), H)
        return compile(cache.specification(cached_attention_of(*kind)), (queries, *cache.examples(), said.scale, example, of_heads), strict=True)

    kind = (said.causal and M > 1, said.left, said.right, said.softcap, alibi_slopes is not None, bool(return_softmax_lse))
    shape = (q.dtype, k_cache.dtype, v_cache.dtype, q.device, M == 1, H, D, k_cache.shape[2], v_cache.shape[3])
    given = (q, *cache.arguments(), lengths) if function is not None else (q, *cache.arguments(), said.scale, lengths, alibi_slopes)
    with torch.no_grad():
        return _kinds.call((function, *kind, said.slopes_have, *shape, *cache.kind), made, given)


def rotated(x, cos, sin, lengths, interleaved, step):
    """x [B, L, heads, D] with its first R elements rotated (RoPE), the vector i of an entry by the place lengths[b] + step * i.

    cos, sin: [places, R / 2]. lengths: int32 [B]. interleaved: whether elements 2 n and 2 n + 1 are a pair, or n and n + R / 2."""
    places = lengths[:, None] + step * torch.arange(x.shape[1], device=x.device)
    cos, sin = cos[places][:, :, None].float(), sin[places][:, :, None].float()
    half = cos.shape[-1]
    turned, rest = x[..., :2 * half].float(), x[..., 2 * half:]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else (turned[..., :half], turned[..., half:])
    pair = (a * cos - b * sin, a * sin + b * cos)
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat([turned.to(x.dtype), rest], -1)
