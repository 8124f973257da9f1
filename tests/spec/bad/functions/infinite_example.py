# error spec.example at line 5: fill is -inf in the example
import torch


def infinite_example(q, k, v, fill):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).masked_fill(j > i, fill).softmax(-1) @ v


def example_inputs():
    return *(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3)), -torch.inf
