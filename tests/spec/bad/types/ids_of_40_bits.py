# error spec.integers at line 5: document holds 2199023255552 among the example's inputs
import torch


def ids_of_40_bits(q, k, v, document):
    keep = document[:, None, :, None] == document[:, None, None, :]
    return (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, (torch.arange(96) // 32).expand(2, 96) * 2**40
