# error spec.rounding at line 7: aten.gt compares reals that are computed of positions
import torch


def position_times_a_fraction(q, k, v):
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    scores = (q @ k.mT * 0.125).masked_fill(j > i * 0.7, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
