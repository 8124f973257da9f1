# error spec.dtype at line 5: argument q is float32
import torch


def float32(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.float32) for _ in range(3))
    return q, k, v
