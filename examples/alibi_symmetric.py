"""ALiBi for encoders: scores fall off with the distance to either side.
"""

import torch


def alibi_symmetric(q, k, v, slopes):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], slopes [16] (fp32); any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    scores = q @ k.mT * q.shape[-1] ** -0.5 - slopes[:, None, None] * (i - j).abs()
    return scores.softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    slopes = 2.0 ** (-0.5 * torch.arange(1, 17))
    return q, k, v, slopes
