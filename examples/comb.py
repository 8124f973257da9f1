"""Three changes at once: a prefix-LM mask, scores capped at 50, and sigmoid weights.

Query i of batch entry b sees key j if j <= i or j < prefix[b]; its weight is
sigmoid(50 tanh(s / 50) - log(n)), with n the number of keys.
"""

import math

import torch


def comb(q, k, v, prefix):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], prefix [B] (integers); any B, M and N."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)[None, :]
    keep = (j <= i) | (j < prefix[:, None, None, None])

    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = 50.0 * torch.tanh(scores / 50.0)
    weights = torch.sigmoid(scores - math.log(k.shape[2]))
    return torch.where(keep, weights, 0.0) @ v


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    prefix = torch.tensor([17, 130], dtype=torch.int32)
    return q, k, v, prefix
