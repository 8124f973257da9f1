# error spec.wraps at line 7: aten.add makes int64 of what may be 2^62 and more to 2^62 and more, and keeps 64 bits
import torch


def next_to_the_largest_integer(q, k, v):
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    far = j + (2**63 - 5000) > i + (2**63 - 5000)
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
