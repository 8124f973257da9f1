# error spec.not_attention at line 8: the softmax's argument holds something else than products
import torch


def maximum_of_column(q, k, v):
    """Each score times the greatest of its column."""
    s = q @ k.mT
    return (s * s.amax(-2, keepdim=True)).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
