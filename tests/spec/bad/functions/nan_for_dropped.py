# error spec.nan at line 7: puts NaN into the result
import torch


def nan_for_dropped(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return torch.where(j <= i, q @ k.mT, torch.nan).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
