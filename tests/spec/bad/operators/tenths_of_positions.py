# error spec.rounding at line 8: an integer is made of a real here that is rounded, and has more than 256 steps
import torch


def tenths_of_positions(q, k, v):
    """fp32 and fp64 agree at every position; of a form without steps a factor may be moved, and no kernel computes it."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    early = j <= (i * 0.1).int()
    return (q @ k.mT * 0.125).masked_fill(~early, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
