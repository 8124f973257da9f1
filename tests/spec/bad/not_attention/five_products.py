# error spec.several_products at line 6: the scores hold 5 products of q and k; 4 are supported
import torch


def five_products(q, k, v, a, b, c, d):
    return (q @ k.mT + a @ k.mT + b @ k.mT + c @ k.mT + d @ k.mT).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(7))
