"""Causal inside each block, and the last block sees everything before it (in-context examples).

Blocks have any lengths; `block` gives each position its block's number, rising from 0.
"""

import torch


def causal_blockwise(q, k, v, block, last: int):
    """q, k and v [B, 16, S, 128], block [B, S] (int32), last: the number of the last block."""
    position = torch.arange(q.shape[2], device=q.device)
    past = position[None, :] <= position[:, None]
    same = block[:, :, None] == block[:, None, :]
    keep = past & (same | (block == last)[:, :, None])

    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~keep[:, None], float("-inf"))
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    lengths = torch.tensor([30, 50, 20, 40, 36, 24, 26, 30])
    block = torch.repeat_interleave(torch.arange(8, dtype=torch.int32), lengths)
    return q, k, v, block.expand(2, 256).contiguous(), 7
