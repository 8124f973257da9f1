# error spec.no_function at line 1: no function no_function
import torch


def attention(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def other(q, k, v):
    return attention(q, k, v)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
