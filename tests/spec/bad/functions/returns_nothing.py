# error spec.output at line 5: the function returns None, and what a kernel gives is tensors
import torch


def returns_nothing(q, k, v):
    q @ k.mT @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
