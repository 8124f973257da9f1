"""Attention functions in FlexAttention's vocabulary, for those who have its mods already.

    sees = lambda b, h, q_idx, kv_idx: documents[b, q_idx] == documents[b, kv_idx]
    fast = kernelwright.compile(kernelwright.flex(mask_mod=sees), (q, k, v))

FlexAttention calls a mod once for each score, by vmap. Here it is called once with index tensors of
four dimensions that broadcast, [B, 1, 1, 1] to [1, 1, 1, N]: what is written for single indices
(arithmetic, comparisons, tensors indexed by them) mostly means the same of these. Not always: of a single
b, L[b] is a row of L and L[b][0] its first element; of many it is the row of batch entry 0. So wherever
the function runs on numbers, as `compile` does before anything is made, the mods are called as
FlexAttention calls them too, for some scores, and a difference is refused. What comes out is plain
PyTorch, which `compile` captures like any other function; tensors that mods reach become arguments.

Semantics are FlexAttention's: scores are fp32 and scaled before `score_mod` sees them, and a mask keeps
where it is true. A row that keeps no key gives 0 in the kernel.
"""

import math
import sys

import torch

from .capture import code
from .errors import ArgumentError


def flex(score_mod=None, mask_mod=None, *, scale=None, enable_gqa=False):
    """An attention function in FlexAttention's vocabulary, to be given to `compile`.

    score_mod: score_mod(score, b, h, q_idx, kv_idx) gives the new score, in fp32 and after the scale.
    mask_mod: mask_mod(b, h, q_idx, kv_idx) gives whether a key counts. Both are called once, with index
        tensors that broadcast ([B, 1, 1, 1] to [1, 1, 1, N]), and not once a score. Tensors that they
        reach become arguments of the kernel.
    scale: a number that scores are multiplied by; 1 / sqrt(D) by default.
    enable_gqa: G may divide H, and a key head serves H / G query heads.

    Gives a function of q [B, H, M, D], k [B, G, N, D] and v [B, G, N, V], to [B, H, M, V] in v's type.
    Raises ArgumentError for a mod that cannot be called; and the function, where it runs on numbers, for one that
    means something else of many indices than of one."""
    for name, mod in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if mod is not None and not callable(mod):
            raise ArgumentError("flex", name, f"is of the type {type(mod).__name__}", "be a function")

    def attention(q, k, v):
        if enable_gqa:
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        scores = (q @ k.transpose(-2, -1)).float() * factor
        places = _indices(scores)
        if score_mod is not None:
            modified = score_mod(scores, *places)
            _means_the_same("score_mod", score_mod, modified, scores)
            scores = modified
        if mask_mod is not None:
            kept = mask_mod(*places)
            _means_the_same("mask_mod", mask_mod, kept, scores, given=())
            scores = torch.where(kept, scores, -math.inf)
        return torch.softmax(scores, dim=-1).to(v.dtype) @ v

    mods = tuple(mod for mod in (score_mod, mask_mod) if mod is not None)
    named = next((f for f in map(code.unwrapped, mods) if hasattr(f, "__code__")), None)
    if named is not None:
        attention.__name__ = attention.__qualname__ = f"flex_{_identifier(named.__name__)}"
        attention.__module__ = named.__module__
    attention.__kernelwright_mods__ = mods  # capture/code.py reads the user's code from here on
    attention.__kernelwright_place__ = _place(named, sys._getframe(1))
    return attention


def _place(mod, caller):
    """(file, line) that messages name: the mod's, or of one that is no function of the user's where flex was called."""
    if mod is None or code.is_others(mod.__code__.co_filename) and not mod.__code__.co_filename.startswith("<"):
        return caller.f_code.co_filename, caller.f_lineno
    return mod.__code__.co_filename, mod.__code__.co_firstlineno


def _indices(scores):
    """b, h, q_idx and kv_idx of every score, each along its own dimension."""
    shape = [[-1 if d == own else 1 for d in range(4)] for own in range(4)]
    return [torch.arange(scores.shape[d], device=scores.device).view(shape[d]) for d in range(4)]


_SCORES = 256  # that are looked at


def _means_the_same(name, mod, result, scores, given=None):
    """Whether a mod said of all scores what it says of each by itself, where there are numbers to look at:
    neither while it is traced nor of tensors without contents. Raises ArgumentError with the first that differs."""
    if torch.compiler.is_compiling() or type(scores) is not torch.Tensor or scores.is_meta:
        return
    generator = torch.Generator().manual_seed(0)
    places = [torch.randint(size, (_SCORES,), generator=generator).to(scores.device) for size in scores.shape]
    given = (scores[tuple(places)],) if given is None else given
    try:
        each = torch.vmap(mod)(*given, *places)
    except Exception as error:
        raise ArgumentError("flex", name, f"cannot be called for a single score, as FlexAttention does: {error}",
                            "take single indices") from error
    at_once = torch.broadcast_to(torch.as_tensor(result, device=scores.device), scores.shape)[tuple(places)]
    each = torch.broadcast_to(each, at_once.shape)
    same = torch.isclose(each.float(), at_once.float(), rtol=1e-4, atol=1e-5, equal_nan=True)
    if not same.all():
        n = int((~same).nonzero()[0])
        where = ", ".join(f"{word} {int(p[n])}" for word, p in zip(("b", "h", "q_idx", "kv_idx"), places))
        raise ArgumentError("flex", name, f"gives {at_once[n].item()} at {where} when it is called with all indices "
                            f"at once, and {each[n].item()} when it is called with these", "mean the same of many "
                            "indices as of one", hint="index a tensor once, with all its indices: L[b, 0], not L[b][0]")


def _identifier(name):
    return name if name.isidentifier() else "lambda"
