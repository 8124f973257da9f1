# error spec.writes at line 7: argument k is written to here
import torch


def writes_to_keys(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    k.transpose(1, 2).mul_(2.0)
    return (q @ k.mT * 0.125).masked_fill(~(j <= i), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
