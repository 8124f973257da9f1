"""Rotary positions: each row of q and k is rotated by its position, causal (Llama).

Column d is rotated together with column d + 64, by angles whose cosines and sines are tables.
"""

import torch
import torch.nn.functional as F


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rope(q, k, v, cos, sin):
    """q [B, 32, S, 128], k and v [B, 8, S, 128], cos and sin [S, 128]; any B and S."""
    q = q * cos + rotate_half(q) * sin
    k = k * cos + rotate_half(k) * sin
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    rates = 10000.0 ** (-torch.arange(0, 128, 2) / 128)
    angles = torch.outer(torch.arange(256), rates).repeat(1, 2)
    return q, k, v, angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
