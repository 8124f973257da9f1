# error spec.operator at line 7: RoundToInt(IntTrueDiv(
import torch


def rounds_a_size(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).masked_fill(j >= round(k.shape[2] / 2), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
