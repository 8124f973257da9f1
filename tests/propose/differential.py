"""Differential attention: what one softmax sees, less a part of what another does."""
import torch


def differential(q1, k1, q2, k2, v, lam: float):
    """q1, q2 [B, 8, M, 128]; k1, k2, v [B, 4, N, 128]."""
    k1, k2, v = (x.repeat_interleave(2, 1) for x in (k1, k2, v))
    first = (q1 @ k1.mT * 128**-0.5).softmax(-1)
    second = (q2 @ k2.mT * 128**-0.5).softmax(-1)
    return (first - lam * second) @ v


def example_inputs():
    q1, q2 = (torch.randn(2, 8, 512, 128, dtype=torch.bfloat16) for _ in range(2))
    k1, k2, v = (torch.randn(2, 4, 512, 128, dtype=torch.bfloat16) for _ in range(3))
    return q1, k1, q2, k2, v, 0.3
