# error spec.operator at line 6: aten.mean is over
import torch


def norm_over_tokens(q, k, v):
    v = v - v.mean(2, keepdim=True)
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
