# error spec.operator at line 6: a root or a logarithm in its operand may be none
import torch


def root_without_nan(q, k, v):
    scores = (q @ k.mT * 0.125).pow(0.5).nan_to_num(0.0)
    return scores.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(1, 2, 96, 64, dtype=torch.bfloat16) for _ in range(3))
