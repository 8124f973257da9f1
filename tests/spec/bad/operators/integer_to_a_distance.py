# error spec.operator at line 7: an integer to the power of an integer is supported for constant powers from 0 to 8
import torch


def integer_to_a_distance(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    steps = 2 ** ((i - j) % 5)
    return (q @ k.mT * 0.125 + 0.01 * steps.to(q.dtype)).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
