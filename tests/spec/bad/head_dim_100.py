# error spec.head_dim at line 5: the head dimension is 100
import torch


def head_dim_100(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 100, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
