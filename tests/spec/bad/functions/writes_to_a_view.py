# error spec.shared_memory at line 7: aten.fill_.Scalar writes into memory that another tensor shares, which is read in line 8
import torch


def writes_to_a_view(q, k, v):
    s = q @ k.mT * 0.125
    s[..., 5000:].fill_(-torch.inf)
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
