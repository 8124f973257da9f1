# error spec.softmax_axis at line 7: softmax runs over an index as long as dimension 2 of q, but the product with v sums over an index as long as dimension 2 of
import torch


def softmax_axis(q, k, v):
    s = (q @ k.mT) * 0.125
    p = s.softmax(-2)
    return p @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
