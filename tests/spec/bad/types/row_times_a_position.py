# error spec.rounding at line 7: aten.to makes bfloat16 of what is computed of positions and may be 0 to 2147483647
import torch


def row_times_a_position(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).softmax(-1) @ v * (i.to(q.dtype) - (k.shape[2] - 1))


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
