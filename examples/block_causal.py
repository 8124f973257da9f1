"""Blocks of 256 tokens: each sees itself in both directions and every block before it.

Video and diffusion language models generate this way, a block at a time.
"""

import torch


def block_causal(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    keep = i // 256 >= j // 256
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 640, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 640, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 640, 128, dtype=torch.bfloat16)
    return q, k, v
