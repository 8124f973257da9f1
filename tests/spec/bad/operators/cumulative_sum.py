# error spec.scan at line 7: aten.cumsum.default runs along the keys
import torch


def cumulative_sum(q, k, v):
    s = q @ k.mT
    s = s + s.sigmoid().cumsum(-1)
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
