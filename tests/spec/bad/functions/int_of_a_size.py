# error spec.branch_on_size at line 8: an operator does one thing where TruncToInt(0.001*ToFloat(k.shape[2])) == 0
import torch


def int_of_a_size(q, k, v):
    n = k.shape[2]
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(n)
    keep = (j <= i) | (j < int(n * 0.001))
    return (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
