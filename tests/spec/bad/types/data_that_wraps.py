# error spec.wraps at line 6: aten.mul makes int32 of what may be -8589934592 to 8589934592
import torch


def data_that_wraps(q, k, v, rank):
    later = 16 * rank[:, None, :, None] >= rank[:, None, None, :]
    return (q @ k.mT * 0.125).masked_fill(~later, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.arange(192, dtype=torch.int32).view(2, 96)
