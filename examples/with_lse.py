"""Attention over a part of the keys, with what a later merge needs: the logarithm of each row's sum."""

import torch


def with_lse(q, k, v):
    """q [B, 32, M, 128], k and v [B, 8, N, 128]; any B, M and N. Gives the output and [B, 32, M]."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores, dim=-1) @ v, torch.logsumexp(scores, dim=-1)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 192, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 192, 128, dtype=torch.bfloat16)
    return q, k, v
