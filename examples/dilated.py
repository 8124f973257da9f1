"""Dilated causal attention: query i sees every fourth key, counted back from itself.
"""

import torch


def dilated(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    keep = (j <= i) & ((i - j) % 4 == 0)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    return q, k, v
