# error spec.wraps at line 8: aten.bitwise_left_shift makes int32 of what may be 0 to
import torch


def shift_that_wraps(q, k, v):
    i = torch.arange(q.shape[2], dtype=torch.int32)[:, None]
    j = torch.arange(k.shape[2], dtype=torch.int32)
    keep = ((j << 18) >> 18) <= i
    return (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
