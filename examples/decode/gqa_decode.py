"""Grouped heads as they are decoded: one query for each sequence, which sees all of its keys so far.
Eight query heads share a key head, and are rows of one tile.
"""
import torch
from torch.nn.functional import scaled_dot_product_attention


def gqa_decode(q, k, v, lengths):
    seen = torch.arange(k.shape[2], device=q.device) < lengths[:, None, None, None]
    return scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def example_inputs():
    q = torch.randn(4, 32, 1, 128, dtype=torch.bfloat16)
    k, v = (torch.randn(4, 4, 512, 128, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.tensor([512, 77, 300, 1], dtype=torch.int32)
