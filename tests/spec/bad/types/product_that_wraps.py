# error spec.wraps at line 7: aten.mul makes int32 of what may be -1677721600000 to 1677721600000
import torch


def product_that_wraps(q, k, v):
    i, j = torch.arange(q.shape[2], dtype=torch.int32)[:, None], torch.arange(k.shape[2], dtype=torch.int32)
    keep = (i - j) * 100000 >= 0
    return (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
