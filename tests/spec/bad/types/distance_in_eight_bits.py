# error spec.conversion at line 7: keeps 8 bits of an integer that may be
import torch


def distance_in_eight_bits(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).masked_fill(~((i - j).to(torch.uint8) < 100), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
