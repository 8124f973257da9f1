# error spec.not_attention at line 7: nor the sum of each key's weights over the rows
import torch


def sums_of_scores(q, k, v):
    s = q @ k.mT
    return s.softmax(-1) @ v, s.sum(-2)


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
