"""Prefix language model: the prompt sees itself in both directions, the answer looks back.

Query i of batch entry b sees key j if j <= i or j lies in the entry's prefix, j < prefix[b].
"""

import torch


def prefix_lm(q, k, v, prefix):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], prefix [B] (integers); any B, M and N."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)[None, :]
    keep = (j <= i) | (j < prefix[:, None, None, None])

    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = torch.where(keep, scores, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    prefix = torch.tensor([17, 130], dtype=torch.int32)
    return q, k, v, prefix
