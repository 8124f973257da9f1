# error spec.branch_on_size at line 7: an operator does one thing where q.shape[2] != 1477
import torch


def truth_of_a_size(q, k, v):
    """What is true or false of a size is a number here, that of the example."""
    scale = 0.125 * (1 + (q.shape[2] == 1477))
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
