# error spec.not_attention at line 6: no product of a softmax over keys with v
import torch


def not_attention(q, k, v):
    return (q * k).sum(-1, keepdim=True) * v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
