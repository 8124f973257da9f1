# error spec.conversion at line 6: rounds to float8_e4m3fn
import torch


def quantised(q, k, v):
    coarse = q.to(torch.float8_e4m3fn).to(q.dtype)
    return (coarse @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
