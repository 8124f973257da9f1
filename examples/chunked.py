"""Chunked causal attention with a temperature that grows with the position (Llama 4).

A query sees the keys of its own chunk of CHUNK tokens up to itself; scores are scaled by
log(floor((i + 1) / 8192) + 1) * 0.1 + 1.
"""

import torch

CHUNK = 512


def chunked(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    keep = (j <= i) & (j // CHUNK == i // CHUNK)
    temperature = torch.log(torch.floor((i + 1) / 8192.0) + 1.0) * 0.1 + 1.0
    scores = (q @ k.mT * q.shape[-1] ** -0.5 * temperature).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    return q, k, v
