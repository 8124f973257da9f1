# error spec.rounding at line 7: bfloat16 holds whole numbers up to 256
import torch


def values_times_a_position(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).softmax(-1) @ (v * (j.bfloat16()[:, None] - (k.shape[2] - 1)))


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
