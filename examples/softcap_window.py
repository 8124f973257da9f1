"""Gemma 2's local layers: capped scores in a causal window.
"""

import torch

WINDOW = 1024


def softcap_window(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    scores = 50.0 * torch.tanh(q @ k.mT * q.shape[-1] ** -0.5 / 50.0)
    scores = scores.masked_fill((j > i) | (j <= i - WINDOW), -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    return q, k, v
