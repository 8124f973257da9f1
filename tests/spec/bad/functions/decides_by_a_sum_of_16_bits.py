# error spec.conversion at line 6: aten.add.Tensor rounds to bfloat16, and what is decided in line 6 depends on it
import torch


def decides_by_a_sum_of_16_bits(q, k, v, a, b):
    dropped = (a[:, None, :, None] + b[:, None, None, :]) > 1.0
    return (q @ k.mT * 0.125).masked_fill(dropped, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.rand(2, 96).bfloat16(), torch.rand(2, 96).bfloat16()
