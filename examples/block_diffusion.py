"""Block diffusion (BD3-LM): a noisy copy of the sequence, then the clean one, in blocks of 64.

A noisy block sees itself and the clean blocks before it; a clean block sees itself and the clean blocks before
it. The sequence is twice LENGTH tokens long.
"""

import torch

LENGTH = 512


def block_diffusion(q, k, v):
    """q, k and v [B, 16, 1024, 128]; any B."""
    i = torch.arange(2 * LENGTH, device=q.device)[:, None]
    j = torch.arange(2 * LENGTH, device=q.device)
    noisy_i, noisy_j = i < LENGTH, j < LENGTH
    block_i, block_j = i % LENGTH // 64, j % LENGTH // 64
    itself = (block_i == block_j) & (noisy_i == noisy_j)
    before = noisy_i & ~noisy_j & (block_j < block_i)
    clean = ~noisy_i & ~noisy_j & (block_j <= block_i)
    keep = itself | before | clean
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 1024, 128, dtype=torch.bfloat16)
    return q, k, v
