# error spec.run at line 6: shape_error raises
import torch


def shape_error(q, k, v):
    s = q @ k
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
