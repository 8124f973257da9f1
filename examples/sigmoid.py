"""Sigmoid attention (Ramapuram et al., 2024): each weight is a sigmoid of its score, on its own.

No weight depends on another key, so nothing is divided by a sum. The bias -log(n), n the number of
keys, keeps the weights of a row together at about 1 when training starts.
"""

import math

import torch


def sigmoid(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    keys = k.shape[2]
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(keys, device=q.device)

    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = (scores - math.log(keys)).masked_fill(j > i, -torch.inf)
    return torch.sigmoid(scores) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
