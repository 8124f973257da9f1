"""T5's encoder: a learnt bias for each head and each bucket of the distance j - i.

Distances up to 7 have a bucket of their own; from there on buckets widen with the logarithm, up to
128. Keys behind and keys ahead have 16 each. T5 does not scale the scores.
"""

import math

import torch

BUCKETS, FARTHEST = 32, 128


def buckets(distance):
    half = BUCKETS // 2
    exact = half // 2
    far = distance.abs()
    wide = exact + (torch.log(far.float() / exact) / math.log(FARTHEST / exact) * (half - exact)).long()
    wide = torch.min(wide, torch.full_like(wide, half - 1))
    return (distance > 0).long() * half + torch.where(far < exact, far, wide)


def t5_buckets(q, k, v, table):
    """q [B, 16, M, 64], k and v [B, 16, N, 64], table [32, 16] (fp32); any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)
    j = torch.arange(k.shape[2], device=q.device)
    bias = table[buckets(j[None, :] - i[:, None])].permute(2, 0, 1)
    return torch.softmax(q @ k.transpose(-1, -2) + bias, dim=-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 64, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 64, dtype=torch.bfloat16)
    return q, k, v, torch.randn(32, 16)
