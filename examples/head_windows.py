"""A causal window of its own for each head.

Some heads look far, some near: windows holds how many keys a head sees.
"""

import torch


def head_windows(q, k, v, windows):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], windows [16] (integers); any B, M and N."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)[None, :]
    keep = (j <= i) & (i - j < windows[:, None, None])
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 512, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 512, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 512, 128, dtype=torch.bfloat16)
    windows = 64 * torch.arange(1, 17, dtype=torch.int32)
    return q, k, v, windows
