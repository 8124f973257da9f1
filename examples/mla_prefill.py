"""The prefill of multi-head latent attention (DeepSeek-V2): 192 columns of q and k, 128 of v, causal."""

import torch


def mla_prefill(q, k, v):
    """q and k [B, 16, S, 192], v [B, 16, S, 128]; any B and S."""
    i = torch.arange(q.shape[2], device=q.device)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(i[None, :] > i[:, None], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 16, 256, 192, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 256, 192, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    return q, k, v
