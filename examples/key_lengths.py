"""Padding: of batch entry b only the first lengths[b] keys are there.
"""

import torch


def key_lengths(q, k, v, lengths):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], lengths [B] (integers); any B, M and N."""
    j = torch.arange(k.shape[2], device=q.device)
    keep = j < lengths[:, None, None, None]
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    lengths = torch.tensor([77, 256], dtype=torch.int32)
    return q, k, v, lengths
