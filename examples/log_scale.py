"""Scalable softmax (SSMax): causal scores are multiplied by a head's factor times the log of how many
keys the row sees.
"""

import torch


def log_scale(q, k, v, factors):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], factors [16] (fp32); any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    scores = q @ k.mT * q.shape[-1] ** -0.5
    scores = scores * (factors[:, None, None] * torch.log(i + 1.0))
    return scores.masked_fill(j > i, -torch.inf).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    factors = torch.rand(16) * 0.3 + 0.2
    return q, k, v, factors
