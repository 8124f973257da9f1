"""KERPLE (Chi et al., 2022), logarithmic: causal, scores fall by r1 * log(1 + r2 * distance).
"""

import torch


def kerple(q, k, v, r1, r2):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], r1 and r2 [16] (fp32, positive); any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    distance = (i - j).clamp(min=0)
    bias = -r1[:, None, None] * torch.log1p(r2[:, None, None] * distance)
    scores = q @ k.mT * q.shape[-1] ** -0.5 + bias
    return scores.masked_fill(j > i, -torch.inf).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    r1, r2 = torch.rand(16) + 0.1, torch.rand(16) + 0.1
    return q, k, v, r1, r2
