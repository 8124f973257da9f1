"""QK-norm, then rotary positions: the prologue of Qwen 3, Gemma 3 and OLMo 2, causal.

The norm is written out, in fp32; the tables have a row for each position of each batch entry.
"""

import torch
import torch.nn.functional as F


def rms_norm(x, weight):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rotate_half(x):
    return torch.cat((-x[..., 64:], x[..., :64]), dim=-1)


def qk_norm_rope(q, k, v, q_weight, k_weight, cos, sin):
    """q [B, 32, S, 128], k and v [B, 8, S, 128], q_weight and k_weight [128], cos and sin [B, S, 128] in
    fp32; any B and S."""
    q, k = rms_norm(q, q_weight), rms_norm(k, k_weight)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    q = (q * cos + rotate_half(q) * sin).to(v.dtype)
    k = (k * cos + rotate_half(k) * sin).to(v.dtype)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    q_weight = torch.randn(128, dtype=torch.bfloat16)
    k_weight = torch.randn(128, dtype=torch.bfloat16)
    rates = 1000000.0 ** (-torch.arange(0, 128, 2) / 128)
    angles = torch.outer(torch.arange(256), rates).repeat(1, 2).expand(2, 256, 128)
    return q, k, v, q_weight, k_weight, angles.cos(), angles.sin()
