# error spec.branch_on_size at line 6: an operator does one thing where ((k.shape[2] + 65535)//65536) == 1
import torch


def splits_at_65536(q, k, v):
    k, v = k.split(65536, 2)[0], v.split(65536, 2)[0]
    return (q @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
