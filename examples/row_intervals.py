"""A range of keys for each query, given by the data: `start[b, i] <= j < end[b, i]`.

What packed sequences, chunks or retrieved passages come to once somebody has computed where each
row begins and ends (FlashMask's row intervals).
"""

import torch
import torch.nn.functional as F


def row_intervals(q, k, v, start, end):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], start and end [B, M] (int32); any B, M and N."""
    j = torch.arange(k.shape[2], device=q.device)
    keep = (start[:, :, None] <= j) & (j < end[:, :, None])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None], enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    start = torch.arange(256, dtype=torch.int32) // 64 * 64
    start = start.expand(2, 256).contiguous()
    return q, k, v, start, start + 64
