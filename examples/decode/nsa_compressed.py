"""Native sparse attention's compressed branch as it is decoded: key j stands for tokens 16 j to 16 j + 31, and a query
sees those whose tokens it has all seen.
"""

import torch


def nsa_compressed(q, k, v, length):
    """q: [B, H, 1, D], k and v of blocks: [B, G, blocks, D], length: the tokens of each sequence, [B]."""
    block = torch.arange(k.shape[2], device=q.device)
    kept = block * 16 + 32 <= length[:, None, None, None]
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * q.shape[3] ** -0.5
    scores = scores.masked_fill(~kept, -torch.inf)
    return scores.softmax(-1) @ v.repeat_interleave(group, 1)


def example_inputs():
    q = torch.randn(2, 32, 1, 128, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 511, 128, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.tensor([8192, 5000], dtype=torch.int32)
