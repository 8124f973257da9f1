# error spec.operand at line 6: a row of q or k is changed by aten.amax over an index of length 64
import torch


def largest_of_row(q, k, v):
    q = q / q.abs().amax(-1, keepdim=True)
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
