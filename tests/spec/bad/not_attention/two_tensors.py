# error spec.not_attention at line 6: holds no product
import torch


def two_tensors(a, b):
    return a * b


def example_inputs():
    a, b = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(2))
    return a, b
