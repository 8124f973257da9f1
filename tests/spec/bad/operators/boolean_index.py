# error spec.branch_on_value at line 6: depends on a tensor's value
import torch


def boolean_index(q, k, v):
    kept = k[:, :, k[0, 0, :, 0] > 0]
    return (q @ kept.mT).softmax(-1) @ v[:, :, k[0, 0, :, 0] > 0]


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
