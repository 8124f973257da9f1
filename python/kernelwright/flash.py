"""FlashAttention's functions by their names and arguments, on kernels of ours.

    from kernelwright.flash import flash_attn_func
    out = flash_attn_func(q, k, v, causal=True, window_size=(1024, 0), softcap=30.0)

The options are written down as a function in plain PyTorch (`attention_of`), which is compiled once for each set of them, heads
and types; lengths, the scale and slopes are arguments of the kernel. `function=` puts another one in its place: one's own score,
mask or normaliser behind the same call.

Semantics are FlashAttention's: tensors are [batch, length, heads, head dimension], the last query stands at the last key's place,
a window counts keys on either side of a query's place, slopes are of the distance to it, and gradients are of q, k and v (of slopes, too, where
these require some). A row without a key gives 0; its log-sum is -inf, where FlashAttention says inf.
"""

import math

import torch

from .compiling.kinds import Kinds
from .errors import ArgumentError

_kinds = Kinds()
_LENGTH, _BATCH = 256, 2  # of examples, so that another process finds the kernel in the cache


def attention_of(causal=False, left=-1, right=-1, softcap=0.0, slopes=False, log_sum=False):
    """Attention with FlashAttention's options as a specification: a function in plain PyTorch, for `compile`.

    causal: whether key j is dropped for a query before it.
    left, right: how many keys before and behind its place a query sees; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    slopes: whether there are some.
    log_sum: whether the log-sum of each row is given, too.

    Gives attention(q, k, v, scale, slopes): q [B, M, H, D], k [B, N, G, D], v [B, N, G, V], scale a float, slopes [H] or [B, H] or
    None. It gives [B, M, H, V] in v's type, and the log-sums [B, H, M] in fp32."""

    def attention(q, k, v, scale, slopes_of_heads):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        scores = (q @ k.mT).float() * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        i = torch.arange(q.shape[2], device=q.device)[:, None] + (k.shape[2] - q.shape[2])
        j = torch.arange(k.shape[2], device=q.device)
        if slopes:
            scores = scores - slopes_of_heads[..., None, None] * (i - j).abs()
        if causal:
            scores = scores.masked_fill(j > i, -math.inf)
        elif right >= 0:
            scores = scores.masked_fill(j > i + right, -math.inf)
        if left >= 0:
            scores = scores.masked_fill(j < i - left, -math.inf)
        output = (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2)
        return (output, scores.logsumexp(-1)) if log_sum else output

    return attention


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False, *, function=None, **others):
    """Attention of dense tensors, as flash_attn.flash_attn_func.

    q: [B, M, H, D], bf16 or f16, on a GPU, any strides.
    k, v: [B, N, G, D] and [B, N, G, V]; G divides H.
    dropout_p: 0.
    softmax_scale: of the scores; 1 / sqrt(D) by default.
    causal: whether a query sees no key behind its place.
    window_size: (left, right), keys that a query sees before and behind its place; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    alibi_slopes: fp32 [H] or [B, H]: slope * distance is taken from each score; or None.
    deterministic: gradients have the same bits in every run.
    return_attn_probs: gives (output, log-sums [B, H, M] in fp32, None); there are no probabilities, which only dropout has a use for.
    function: another function of q, k and v, of the same shapes, in plain PyTorch; the options are its own then.
    others: options of other versions (qv, q_descale, num_splits, ...); None, or what they are by default.

    Returns [B, M, H, V] in v's type. Raises ArgumentError for what a kernel has not, by its name, and what `compile` and a
    `Compiled` raise."""
    _no_other(others)
    if dropout_p:
        raise ArgumentError("flash_attn_func", "dropout_p", f"is {dropout_p}", "be 0")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            what = f"has {x.dim()} dimensions" if isinstance(x, torch.Tensor) else f"is a {type(x).__name__}"
            raise ArgumentError("flash_attn_func", name, what, "be a tensor [batch, length, heads, head dimension]")
    if k.shape[2] == 0 or q.shape[2] % k.shape[2]:
        raise ArgumentError("flash_attn_func", "k", f"has {k.shape[2]} heads", f"have a number that divides the {q.shape[2]} of q")
    options = {"deterministic": True} if deterministic else {}
    shape = (q.dtype, k.dtype, v.dtype, q.device, q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    if function is not None:
        if causal or softmax_scale is not None or tuple(window_size) != (-1, -1) or softcap or alibi_slopes is not None or return_attn_probs:
            raise ArgumentError("flash_attn_func", "function", "is given beside options of FlashAttention's", "have them in it")
        return _kinds.call((function, *shape, deterministic), lambda: _made(function, (q, k, v), options), (q, k, v))
    left, right = _window(window_size, causal)
    slopes = _slopes(alibi_slopes, q)
    given = (q, k, v, float(q.shape[-1]**-0.5 if softmax_scale is None else softmax_scale), slopes)
    said = (bool(causal), left, right, float(softcap), slopes is not None, bool(return_attn_probs))
    kind = (*said, None if slopes is None else slopes.dim(), *shape, deterministic)
    output = _kinds.call(kind, lambda: _made(attention_of(*said), given, options), given)
    return (*output, None) if return_attn_probs else output


# Options of FlashAttention-2 and -3 that change nothing here, each with what it may be: how the work is shared out is the
# kernel's own affair.
_WITHOUT_EFFECT = {"num_splits": (0, 1), "pack_gqa": (None, True, False), "sm_margin": (0,), "attention_chunk": (0,)}


def _no_other(others):
    for name, value in others.items():
        if value is None or value in _WITHOUT_EFFECT.get(name, ()):
            continue
        raise ArgumentError("flash_attn_func", name, f"is given, a {type(value).__name__}", "be None: no kernel here has it",
                            hint="say what it means as a function in plain PyTorch, and give that: function=")


def _window(window_size, causal):
    left, right = (-1 if x is None else int(x) for x in window_size)
    if min(left, right) < -1:
        raise ArgumentError("flash_attn_func", "window_size", f"is {tuple(window_size)}", "have numbers of keys, or -1")
    return left, -1 if causal else right  # a causal query sees none behind, whatever the window says


def _slopes(slopes, q):
    if slopes is None:
        return None
    fits = tuple(slopes.shape) in ((q.shape[2],), (q.shape[0], q.shape[2]))
    if slopes.dtype != torch.float32 or not fits:
        named = str(slopes.dtype).split(".")[1]
        raise ArgumentError("flash_attn_func", "alibi_slopes", f"is {named} {list(slopes.shape)}",
                            f"be float32 [{q.shape[2]}] or [{q.shape[0]}, {q.shape[2]}], one for each head of q")
    return slopes


def _made(function, given, options):
    from . import compile

    def like(x):
        if not isinstance(x, torch.Tensor):
            return x
        if x.dim() == 4:
            return x.new_zeros(_BATCH, _LENGTH, *x.shape[2:])
        return x.new_ones(_BATCH, x.shape[1]) if x.dim() == 2 else x.new_ones(x.shape)

    return compile(function, tuple(like(x) for x in given), **options)
