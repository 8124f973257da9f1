"""Rotary positions of neighbouring columns: 2d and 2d + 1 are one pair, causal (GPT-J, RoFormer).

A cosine and a sine for each pair, in fp32.
"""

import torch


def rotated(x, cos, sin):
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return pairs.flatten(-2).to(x.dtype)


def rope_interleaved(q, k, v, cos, sin):
    """q, k and v [B, 16, S, 128], cos and sin [S, 64]; any B and S."""
    scores = rotated(q, cos, sin) @ rotated(k, cos, sin).transpose(-2, -1) / 128**0.5
    i = torch.arange(q.shape[2], device=q.device)
    scores = scores.masked_fill(i[None, :] > i[:, None], float("-inf"))
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    rates = 10000.0 ** (-torch.arange(0, 128, 2) / 128)
    angles = torch.outer(torch.arange(256), rates)
    return q, k, v, angles.cos(), angles.sin()
