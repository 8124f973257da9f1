"""Causal attention, written with einsum on [batch, sequence, head, dimension] tensors.

Query i sees the keys 0 .. i. Each key head is expanded to the query heads that share it.
"""

import math

import torch


def causal(q, k, v):
    """q [B, M, 32, 128], k and v [B, N, 8, 128]; any B, M and N."""
    batch, queries, heads, dim = q.shape
    keys, groups = k.shape[1], k.shape[2]
    shared = heads // groups
    k = k[:, :, :, None, :].expand(batch, keys, groups, shared, dim).reshape(batch, keys, heads, dim)
    v = v[:, :, :, None, :].expand(batch, keys, groups, shared, dim).reshape(batch, keys, heads, dim)

    scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(dim)
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril()
    scores = scores.masked_fill(~seen, float("-inf"))
    return torch.einsum("bhij,bjhd->bihd", scores.softmax(dim=-1), v)


def example_inputs():
    q = torch.randn(2, 256, 32, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 256, 8, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 256, 8, 128, dtype=torch.bfloat16)
    return q, k, v
