# error spec.several_terms at line 7: is not their sum
import torch


def product_of_softmaxes(q, k, v):
    s = q @ k.mT
    return (s.softmax(-1) @ v) * ((s * 0.5).softmax(-1) @ v)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
