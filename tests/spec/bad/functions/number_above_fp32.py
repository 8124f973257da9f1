# error spec.number at line 6: the number 1e+39, written here or made of others, is none of fp32's normal numbers
import torch


def number_above_fp32(q, k, v):
    return (torch.tanh(q.float() @ k.float().mT * 1e39)).softmax(-1).to(q.dtype) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
