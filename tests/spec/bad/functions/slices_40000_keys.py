# error spec.branch_on_size at line 6: an operator does one thing where k.shape[2] < 40000
import torch


def slices_40000_keys(q, k, v):
    k, v = k[:, :, :40000], v[:, :, :40000]
    return (q @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
