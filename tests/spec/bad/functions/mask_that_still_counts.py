# error spec.mask at line 6: scores are dropped by a finite number here, which still counts
import torch


def mask_that_still_counts(q, k, v, keep):
    s = ((q @ k.mT).clamp(min=64.0) * -1000.0).masked_fill(~keep[:, None, None, :], -1e4)
    return s.softmax(-1) @ v


def example_inputs():
    return *(torch.randn(2, 4, 64, 64, dtype=torch.bfloat16) for _ in range(3)), torch.rand(2, 64) < 0.7
