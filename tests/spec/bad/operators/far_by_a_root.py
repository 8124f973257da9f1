# error spec.rounding at line 8: aten.lt compares reals that are computed of positions
import torch


def far_by_a_root(q, k, v):
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    far = ((i - j) * (i - j)).float().sqrt()
    scores = (q @ k.mT * 0.125).masked_fill(~(far < 7.0), -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
