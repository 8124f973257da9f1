# error spec.conversion at line 6: rounds to float8_e5m2
import torch


def quantised(q, k, v):
    return (q @ k.mT * 0.125).to(torch.float8_e5m2).to(q.dtype).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
