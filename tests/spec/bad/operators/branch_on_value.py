# error spec.branch_on_value at line 7: depends on a tensor's value
import torch


def branch_on_value(q, k, v):
    s = q @ k.mT
    if s.max() > 100:
        s = s * 0.5
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
