# error spec.heads at line 7: where h or h // n is supported
import torch


def heads_in_turn(q, k, v):
    k, v = k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)
    s = q @ k.mT
    return s.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
