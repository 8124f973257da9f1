# error spec.rounding at line 7: aten.arange makes bfloat16 of what is computed of positions
import torch


def rotated(x):
    inverse = 10000.0 ** (-torch.arange(0, 64, 2) / 64)
    angles = torch.arange(x.shape[2], dtype=torch.bfloat16)[:, None] * inverse.bfloat16()
    cos, sin, (a, b) = angles.cos(), angles.sin(), x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def angles_in_bf16(q, k, v):
    return (rotated(q) @ rotated(k).mT * 0.125).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
