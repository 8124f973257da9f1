"""Sliding window (Mistral, Gemma, gpt-oss): query i sees the last WINDOW keys up to itself.

The mask is written as the difference of two triangles, as Hugging Face's mask functions compute it.
"""

import torch

WINDOW = 1024


def sliding_window(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    ones = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    keep = ones.tril() & ~ones.tril(-WINDOW)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 1536, 128, dtype=torch.bfloat16)
    return q, k, v
