# error spec.wraps at line 7: aten.mul makes int64 of what may be 0 to 2^62 and more, and keeps 64 bits of it
import torch


def beyond_64_bits(q, k, v):
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    far = j * 2**52 > i * 2**52
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
