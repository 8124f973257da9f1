# error spec.not_attention at line 8: the softmax's argument holds something else than products
import torch


def sums_of_products(q, k, v):
    """Each score less its row's mean: a sum over keys within the scores."""
    s = q @ k.mT
    return (s * s.amax(-2, keepdim=True)).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
