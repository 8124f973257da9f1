# error spec.rounding at line 7: aten.ge compares reals that are computed of positions, and truediv in line 7 rounds one
import torch


def a_seventh_of_the_keys(q, k, v):
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    far = i - j >= k.shape[2] / 7
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
