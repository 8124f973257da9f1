"""Softmax-plus-one (Miller, 2023): one is added to the sum, so a head may attend to nothing.

The maximum that is subtracted for safety is that of the scores and the 0 of the added one.
"""

import torch


def softmax_one(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    scores = torch.matmul(q, k.mT).float() * q.shape[-1] ** -0.5
    highest = scores.amax(dim=-1, keepdim=True).clamp(min=0)
    powers = torch.exp(scores - highest)
    weights = powers / (torch.exp(-highest) + powers.sum(dim=-1, keepdim=True))
    return torch.matmul(weights.to(v.dtype), v)


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
