"""Block-sparse attention: a table says for each head which blocks of 128 keys a block of 128 queries sees.

As where a cheap look at the blocks has chosen those worth reading.
"""

import torch

BLOCK = 128


def block_table(q, k, v, table):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], table [B, 16, ceil(M / 128), ceil(N / 128)] (bool)."""
    i = torch.arange(q.shape[2], device=q.device) // BLOCK
    j = torch.arange(k.shape[2], device=q.device) // BLOCK
    keep = table[:, :, i[:, None], j]
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 320, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 384, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 384, 128, dtype=torch.bfloat16)
    table = torch.rand(2, 16, 3, 3) < 0.4
    table[:, :, :, 0] = True
    return q, k, v, table
