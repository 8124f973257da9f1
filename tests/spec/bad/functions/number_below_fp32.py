# error spec.number at line 6: the number 1e-40, written here or made of others, is none of fp32's normal numbers
import torch


def number_below_fp32(q, k, v):
    return (q @ k.mT * 64**-0.5 + 1e-40).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
