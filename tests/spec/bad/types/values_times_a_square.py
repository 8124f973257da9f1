# error spec.rounding at line 7: float16 holds whole numbers up to 2048
import torch


def values_times_a_square(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).softmax(-1) @ (v * (j.half() ** 2 * 1e-5)[:, None])


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.float16) for _ in range(3))
