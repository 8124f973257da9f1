# error spec.operand at line 7: reads k at two rows
import torch


def next_token(q, k, v):
    k = k + k.flip(2)
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
