"""Causal attention aligned to the last key: with M queries and N keys, query i sees keys 0 .. i + N - M.

This is what a chunk of a prompt needs whose earlier keys are in a cache.
"""

import torch


def bottom_right(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    keep = j <= i + (k.shape[2] - q.shape[2])
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 128, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 384, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 384, 128, dtype=torch.bfloat16)
    return q, k, v
