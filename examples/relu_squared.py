"""Squared ReLU with row normalisation: each weight is its share of the sum of relu(score)².

Causal. A row whose scores are all negative gives 0.
"""

import torch


def relu_squared(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    weights = scores.float().tril().relu().square()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights.nan_to_num().to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
