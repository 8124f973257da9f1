"""Attention functions in FlexAttention's vocabulary, for those who have its mods already.

    sees = lambda b, h, q_idx, kv_idx: documents[b, q_idx] == documents[b, kv_idx]
    fast = kernelwright.compile(kernelwright.flex(mask_mod=sees), (q, k, v))

FlexAttention calls a mod once for each score, by vmap. Here it is called once with index tensors of
four dimensions that broadcast, [B, 1, 1, 1] to [1, 1, 1, N]: whatever is written for single indices
(arithmetic, comparisons, tensors indexed by them) means the same of these. What comes out is plain
PyTorch, which `compile` captures like any other function; tensors that mods reach become arguments.

Semantics are FlexAttention's: scores are fp32 and scaled before `score_mod` sees them, and a mask keeps
where it is true. A row that keeps no key gives 0 in the kernel.
"""

import math

import torch

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
    Raises ArgumentError for a mod that cannot be called."""
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
            scores = score_mod(scores, *places)
        if mask_mod is not None:
            scores = torch.where(mask_mod(*places), scores, -math.inf)
        return torch.softmax(scores, dim=-1).to(v.dtype) @ v

    user = next((mod for mod in (score_mod, mask_mod) if hasattr(mod, "__code__")), None)
    if user is not None:
        attention.__kernelwright_user__ = user
        attention.__name__ = attention.__qualname__ = f"flex_{_identifier(user.__name__)}"
        attention.__module__ = user.__module__
    return attention


def _indices(scores):
    """b, h, q_idx and kv_idx of every score, each along its own dimension."""
    shape = [[-1 if d == own else 1 for d in range(4)] for own in range(4)]
    return [torch.arange(scores.shape[d], device=scores.device).view(shape[d]) for d in range(4)]


def _identifier(name):
    return name if name.isidentifier() else "lambda"
