"""Neighbourhood attention in one dimension (NATTEN): each query sees the KERNEL keys nearest to it, at the
borders as many as inside.
"""

import torch

KERNEL = 127


def neighborhood(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    length = k.shape[2]
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(length, device=q.device)
    centre = i.clamp(KERNEL // 2, length - 1 - KERNEL // 2)
    keep = (centre - j).abs() <= KERNEL // 2
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    return q, k, v
