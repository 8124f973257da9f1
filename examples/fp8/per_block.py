"""Attention of FP8 operands, with a scale for every 128 rows of q, k and v."""

import torch


def per_block(q, k, v, q_scale, k_scale, v_scale):
    """q, k, v: [B, H, S, D] of float8_e4m3fn, the scales: [B, H, ceil(S / 128)] in float32."""
    i, j = (torch.arange(x.shape[2], device=q.device) // 128 for x in (q, k))
    scores = q.to(torch.float32) @ k.to(torch.float32).mT * q.shape[3] ** -0.5
    scores = scores * q_scale[:, :, i, None] * k_scale[:, :, None, j]
    values = v.to(torch.float32) * v_scale[:, :, j, None]
    return (scores.softmax(-1) @ values).to(torch.bfloat16)


def example_inputs():
    q, k, v = (torch.randn(2, 16, 1024, 128).to(torch.float8_e4m3fn) for _ in range(3))
    return q, k, v, *(torch.rand(2, 16, 8) + 0.5 for _ in range(3))
