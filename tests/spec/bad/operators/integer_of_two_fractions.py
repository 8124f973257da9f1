# error spec.rounding at line 8: it is made of several integers of positions or sizes
import torch


def integer_of_two_fractions(q, k, v):
    """i and j meet as reals: as `(i - j) * 0.0048`, and rounded otherwise."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    far = torch.floor(i * 0.0048 - j * 0.0048) > 2
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
