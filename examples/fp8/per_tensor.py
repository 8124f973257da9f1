"""Attention of FP8 operands, with one scale for each of q, k and v; causal."""

import torch


def per_tensor(q, k, v, q_scale, k_scale, v_scale):
    """q: [B, H, M, D], k and v: [B, G, N, D] of float8_e4m3fn, the scales: numbers or one-element tensors."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.to(torch.float32).repeat_interleave(group, dim=1) for x in (k, v))
    scores = (q.to(torch.float32) @ k.mT) * (q_scale * k_scale * q.shape[3] ** -0.5)
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    weights = scores.masked_fill(j > i, -torch.inf).softmax(-1)
    return (weights @ v * v_scale).to(torch.bfloat16)


def example_inputs():
    q = torch.randn(2, 32, 1024, 128).to(torch.float8_e4m3fn)
    k, v = (torch.randn(2, 8, 1024, 128).to(torch.float8_e4m3fn) for _ in range(2))
    return q, k, v, 0.5, 1.25, 0.75
