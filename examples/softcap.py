"""Causal attention with capped scores (Gemma 2): no score exceeds 50 in size.
"""

import torch


def softcap(q, k, v):
    """q [B, 16, M, 128], k and v [B, 8, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT * q.shape[-1] ** -0.5
    scores = 50.0 * torch.tanh(scores / 50.0)
    scores = torch.where(j <= i, scores, -torch.inf)
    return scores.softmax(-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    return q, k, v
