# error spec.other_function at line 5: which no rounding explains
import torch


def one_batch_apart(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    if q.shape[0] == 1:
        k = k * 2
    return (q @ k.mT * 0.125).masked_fill(~(j <= i), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
