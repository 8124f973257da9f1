"""Block diffusion (BD3-LM): a noisy copy of the sequence, then the clean one, in blocks of 64.

A noisy block sees itself and the clean blocks before it; a clean block sees itself and the clean blocks before
it. The first half of the sequence is the noisy copy.
"""

import torch


def block_diffusion(q, k, v):
    """q, k and v [B, 16, S, 128]; any B and S."""
    length = (q.shape[2] + 1) // 2
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(q.shape[2], device=q.device)
    noisy_i, noisy_j = i < length, j < length
    block_i, block_j = i % length // 64, j % length // 64
    itself = (block_i == block_j) & (noisy_i == noisy_j)
    before = noisy_i & ~noisy_j & (block_j < block_i)
    clean = ~noisy_i & ~noisy_j & (block_j <= block_i)
    keep = itself | before | clean
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    return q, k, v
