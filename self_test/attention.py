"""What the planted bugs of the self-test are bugs of: causal attention of one head.

One head, so that 131,072 keys fit on any machine that writes the truths.
"""

import math

import torch


def attention(q, k, v):
    """q, k and v [B, S, 128]; any B and S."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).tril()
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 256, 128, dtype=torch.bfloat16) for _ in range(3))
