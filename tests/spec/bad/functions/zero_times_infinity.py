# error spec.nan at line 5: a number here is NaN whatever the inputs are
import torch


def zero_times_infinity(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return ((q @ k.mT).float() * 0.125 + (j > i) * -torch.inf).softmax(-1).bfloat16() @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
