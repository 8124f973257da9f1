# error spec.syntax at line 6: Python cannot read this file
import torch


def syntax(q, k, v):
    return (q @ k.mT).softmax(-1 @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
